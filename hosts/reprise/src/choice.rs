//! Which policy to run, as a person writes it: `lru`, `periodic:2048`, `events:back=1`, `my.wasm:key=value,key=value`.

use std::{fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A policy with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PolicyChoice {
    /// One that is shipped, by name.
    Shipped {
        /// For instance `lru`.
        name: String,
        /// Settings, checked when it is loaded.
        settings: Vec<(String, String)>,
    },
    /// A component in a file.
    File {
        /// Where.
        path: PathBuf,
        /// Settings, checked when it is loaded.
        settings: Vec<(String, String)>,
    },
}

/// Why text names no policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyChoiceError {
    /// Nothing before the settings.
    #[error(
        "a policy is a shipped name or a .wasm file, with settings behind a colon: `lru`, `periodic:2048`, `my.wasm:key=value`; `{given}` names none"
    )]
    NoName {
        /// What was given.
        given: String,
    },
    /// A setting that is not `key=value`.
    #[error("settings are written key=value,key=value; `{given}` is not")]
    NotASetting {
        /// What was given.
        given: String,
    },
}

impl PolicyChoice {
    /// A shipped policy without settings.
    pub fn shipped(name: &str) -> Self {
        Self::Shipped { name: name.to_owned(), settings: Vec::new() }
    }

    /// The settings given.
    pub fn settings(&self) -> &[(String, String)] {
        match self {
            Self::Shipped { settings, .. } | Self::File { settings, .. } => settings,
        }
    }
}

/// What a lone value sets: `periodic:2048`.
fn lone_key(name: &str) -> Option<&'static str> {
    (name == "periodic").then_some("period")
}

impl FromStr for PolicyChoice {
    type Err = PolicyChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A path may hold colons: what follows `.wasm:` is settings, all before it is the path.
        let (name, rest) = match text.rfind(".wasm:") {
            Some(at) => (&text[..at + 5], &text[at + 6..]),
            None if text.ends_with(".wasm") => (text, ""),
            None => text.split_once(':').unwrap_or((text, "")),
        };
        if name.is_empty() {
            return Err(PolicyChoiceError::NoName { given: text.to_owned() });
        }
        let settings = rest
            .split(',')
            .filter(|setting| !setting.is_empty())
            .map(|setting| match (setting.split_once('='), lone_key(name)) {
                (Some((key, value)), _) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
                (None, Some(key)) => Ok((key.to_owned(), setting.to_owned())),
                _ => Err(PolicyChoiceError::NotASetting { given: setting.to_owned() }),
            })
            .collect::<Result<_, _>>()?;
        Ok(if name.ends_with(".wasm") || name.contains('/') {
            Self::File { path: name.into(), settings }
        } else {
            Self::Shipped { name: name.to_owned(), settings }
        })
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped { name, .. } => f.write_str(name)?,
            Self::File { path, .. } => write!(f, "{}", path.display())?,
        }
        for (index, (key, value)) in self.settings().iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for PolicyChoice {
    type Error = PolicyChoiceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PolicyChoice> for String {
    fn from(choice: PolicyChoice) -> Self {
        choice.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_colons_is_not_cut_at_the_wrong_one() {
        for (text, printed) in [
            ("lru", "lru"),
            ("periodic:2048", "periodic:period=2048"),
            ("periodic:period=4096", "periodic:period=4096"),
            ("events:back=1", "events:back=1"),
            ("my.wasm", "my.wasm"),
            ("c:/odd:dir/my.wasm:a=1,b=2", "c:/odd:dir/my.wasm:a=1,b=2"),
            ("./built/policy", "./built/policy"),
        ] {
            let choice: PolicyChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), printed);
            assert_eq!(printed.parse(), Ok(choice), "what is printed is read back");
        }
        assert!(matches!("".parse::<PolicyChoice>(), Err(PolicyChoiceError::NoName { .. })));
        assert!(matches!(":a=1".parse::<PolicyChoice>(), Err(PolicyChoiceError::NoName { .. })));
        for text in ["lru:8", "my.wasm:=3", "my.wasm:a", "periodic:=1"] {
            assert!(matches!(text.parse::<PolicyChoice>(), Err(PolicyChoiceError::NotASetting { .. })), "{text}");
        }
    }
}
