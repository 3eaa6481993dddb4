//! The components as built by `cargo components`, embedded: what hosts run by default.
#![no_std]

/// What is embedded, from what it was built and by which compiler; TOML.
pub const MANIFEST: &str = include_str!("manifest.toml");

macro_rules! components {
    ($($name:literal)*) => {
        /// Names of the components, for [`component`].
        pub const NAMES: &[&str] = &[$($name),*];

        /// The bytes of a component, by the name that the manifest gives it; `None` if there is none of that name.
        pub fn component(name: &str) -> Option<&'static [u8]> {
            match name {
                $($name => Some(include_bytes!(concat!($name, ".wasm"))),)*
                _ => None,
            }
        }
    };
}

components! { "core" "full" "periodic" "zero" "events" "adaptive" "lru" "fifo" "two-hit" "segmented" "flop-aware" "ttl-priority" "auto" "write-saver" }

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::format;

    use super::*;

    #[test]
    fn no_component_is_missing_or_of_an_unknown_name() {
        for name in NAMES {
            assert!(component(name).is_some_and(|bytes| bytes.starts_with(b"\0asm")), "{name}");
            assert!(
                MANIFEST.lines().any(|line| line.strip_prefix("name = ") == Some(&format!("\"{name}\""))),
                "{name}"
            );
        }
        assert!(component("none").is_none());
    }
}
