//! Models and layouts: the published numbers, what is refused, and laws over random models.

mod file;
mod fingerprint;
mod layers;
mod layout;
mod presets;
mod random;
mod sections;
mod validation;

use reprise_core::model::{CacheType, Kind};

/// A type of one layer with 100-byte rows, for tests that change one thing about it.
fn simple_type(name: &str, group: &str, kind: Kind) -> CacheType {
    CacheType {
        name: name.to_owned(),
        group: group.to_owned(),
        kind,
        layers: "0".parse().unwrap(),
        row_bytes: 100,
        row_format: "bf16".to_owned(),
    }
}
