//! A set of cells.

use super::ages::CELLS;

const WORDS: usize = CELLS.div_ceil(64);

/// A bit for each cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bits([u64; WORDS]);

impl Bits {
    #[inline]
    pub fn set(&mut self, index: usize, is_in: bool) {
        let (word, bit) = (&mut self.0[index / 64], 1 << (index % 64));
        if is_in { *word |= bit } else { *word &= !bit }
    }

    #[inline]
    pub fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// Those in now, from the first up.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        self.0.into_iter().enumerate().flat_map(|(index, mut word)| {
            core::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }
}
