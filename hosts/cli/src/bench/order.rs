//! In which order records are visited.

/// An order that jumps about, without end, and visits each of `len` places once before it comes back to the first.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    len: u64,
    stride: u64,
}

impl Order {
    /// Of `len` places, at least 1.
    pub fn new(len: u32) -> Self {
        let len = u64::from(len);
        // Steps of the golden section spread neighbours in time widely in place.
        let mut stride = (len * 618 / 1000).max(1);
        while greatest_common_divisor(stride, len) != 1 {
            stride += 1;
        }
        Self { len, stride }
    }

    /// The place that is visited as number `step`.
    pub fn at(self, step: u64) -> u32 {
        // Both factors are 32-bit numbers, and so is the rest.
        (step % self.len * self.stride % self.len) as u32
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_comes_twice_before_all_have_come() {
        for len in (1..200).chain([1009, 4096, 6669]) {
            let order = Order::new(len);
            for start in [0, 7] {
                let mut places: Vec<u32> = (start..start + u64::from(len)).map(|step| order.at(step)).collect();
                places.sort_unstable();
                assert!(places.into_iter().eq(0..len), "{len}");
            }
        }
    }
}
