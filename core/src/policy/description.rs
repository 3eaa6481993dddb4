//! What a policy says of itself, and the settings it takes.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use thiserror::Error;

/// Which decisions a policy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Positions at which windows are kept.
    Checkpoint,
    /// Admission and eviction.
    Cache,
}

/// One setting a policy takes: an integer with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As written in `FILE.wasm:key=value`.
    pub key: &'static str,
    /// One line for a reader.
    pub help: &'static str,
    /// Taken when the setting is not given.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

/// Name, version, kind, settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// For instance `two-hit`.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    /// Which decisions it takes.
    pub kind: Kind,
    /// Whether [`super::CachePolicy::admit`] is to be asked.
    pub admission: bool,
    /// Schema of the bytes of [`super::CachePolicy::save`]; changes when they change meaning. 0: the policy keeps nothing that the
    /// host's table does not hold.
    pub state_schema: u32,
    /// The settings it takes.
    pub settings: &'static [Setting],
}

/// Settings that were checked against a [`Description`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    declared: &'static [Setting],
    values: Vec<u64>,
}

/// Why settings were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The policy has no such setting.
    #[error("no setting `{key}`; there is {known}")]
    Unknown {
        /// What was given.
        key: String,
        /// What could have been given.
        known: String,
    },
    /// Not a whole number.
    #[error("setting `{key}` takes a whole number, not `{value}`")]
    NotANumber {
        /// The setting.
        key: String,
        /// What was given.
        value: String,
    },
    /// A number, but not in the range.
    #[error("setting `{key}` takes {min} to {max}, not {value}")]
    OutOfRange {
        /// The setting.
        key: String,
        /// What was given.
        value: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
}

impl Settings {
    /// Checks `given` against `declared`; a key given twice takes the last value.
    pub fn parse<K: AsRef<str>, V: AsRef<str>>(
        declared: &'static [Setting],
        given: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, SettingsError> {
        let mut values: Vec<u64> = declared.iter().map(|setting| setting.default).collect();
        for (key, value) in given {
            let (key, value) = (key.as_ref(), value.as_ref());
            let Some(index) = declared.iter().position(|setting| setting.key == key) else {
                let keys: Vec<&str> = declared.iter().map(|setting| setting.key).collect();
                let known = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
                return Err(SettingsError::Unknown { key: key.to_owned(), known });
            };
            let Setting { min, max, .. } = declared[index];
            let Ok(number) = value.parse::<u64>() else {
                return Err(SettingsError::NotANumber { key: key.to_owned(), value: value.to_owned() });
            };
            if !(min..=max).contains(&number) {
                return Err(SettingsError::OutOfRange { key: key.to_owned(), value: number, min, max });
            }
            values[index] = number;
        }
        Ok(Self { declared, values })
    }

    /// The value of a declared setting.
    ///
    /// # Panics
    /// When the policy's description does not declare `key`.
    pub fn get(&self, key: &str) -> u64 {
        let index = self.declared.iter().position(|setting| setting.key == key);
        self.values[index.expect("a policy asks only for settings it declares")]
    }
}
