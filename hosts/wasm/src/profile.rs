//! What WebAssembly a component may be made of.

use std::{fmt, str::FromStr};

use thiserror::Error;
use wasmtime::WasmFeatures;

/// What the compilers of languages without a runtime of their own emit by default, floats aside. All else is off, proposals that a
/// later wasmtime brings included, so that a policy means the same everywhere and always.
const INTEGERS: WasmFeatures = WasmFeatures::COMPONENT_MODEL
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES);

/// A fixed set of WebAssembly features. Each profile takes all that the one before it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Integers only. All shipped policies load under it.
    Integer,
    /// Integers and floats, with one bit pattern for every NaN: what compilers of Rust, C, Zig and their like emit.
    #[default]
    Compiled,
    /// Also what the interpreters of JavaScript and Python need (constant expressions that add). Comes with larger limits, see
    /// [`Limits::of`](crate::Limits::of): such a guest takes ten to a hundred times as long for a call.
    Interpreted,
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no profile `{0}`; there is integer, compiled, interpreted")]
pub struct UnknownProfile(pub String);

impl Profile {
    /// All profiles, the strictest first.
    pub const ALL: [Self; 3] = [Self::Integer, Self::Compiled, Self::Interpreted];

    /// As an operator writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Compiled => "compiled",
            Self::Interpreted => "interpreted",
        }
    }

    pub(crate) const fn features(self) -> WasmFeatures {
        let floats = INTEGERS.union(WasmFeatures::FLOATS);
        match self {
            Self::Integer => INTEGERS,
            Self::Compiled => floats,
            Self::Interpreted => floats.union(WasmFeatures::EXTENDED_CONST),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
