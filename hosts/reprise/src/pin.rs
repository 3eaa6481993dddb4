//! Which component a policy's name stands for.

use std::{collections::BTreeMap, fmt, str::FromStr};

use reprise_core::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

/// One policy's name with the BLAKE3 digest of the only component that may bear it: `NAME=HEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// As the policy calls itself in its description.
    pub name: String,
    /// Of the component's bytes.
    pub digest: Digest,
}

/// Digests by the names of policies. A component that calls itself by one of these names is refused unless it has that digest; names
/// that are not here may stand for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(BTreeMap<String, Digest>);

/// Why text pins nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "a pin is written NAME=HEX with the 64 hexadecimal digits that `reprise policy inspect` prints; `{given}` is not"
)]
pub struct PinError {
    given: String,
}

impl Pins {
    /// The digest that `name` is pinned to.
    pub fn get(&self, name: &str) -> Option<Digest> {
        self.0.get(name).copied()
    }
}

/// A name given twice keeps the last digest.
impl FromIterator<Pin> for Pins {
    fn from_iter<I: IntoIterator<Item = Pin>>(pins: I) -> Self {
        Self(pins.into_iter().map(|Pin { name, digest }| (name, digest)).collect())
    }
}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let refused = || PinError { given: text.to_owned() };
        let (name, hex) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(refused)?;
        Ok(Self { name: name.to_owned(), digest: digest(hex).ok_or_else(refused)? })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.digest)
    }
}

fn digest(hex: &str) -> Option<Digest> {
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = Digest::default();
    for (place, byte) in digest.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(digest)
}

impl Serialize for Pins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, digest)| (name, digest.to_string())))
    }
}

impl<'de> Deserialize<'de> for Pins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pins = BTreeMap::<String, String>::deserialize(deserializer)?;
        let pin = |(name, hex): (String, String)| {
            let digest = digest(&hex).ok_or_else(|| D::Error::custom(PinError { given: format!("{name}={hex}") }))?;
            Ok(Pin { name, digest })
        };
        pins.into_iter().map(pin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn what_is_no_digest_does_not_pin() {
        let pin: Pin = format!("two-hit={HEX}").parse().unwrap();
        assert_eq!((pin.name.as_str(), pin.digest.0[..3].to_vec()), ("two-hit", vec![0x00, 0x11, 0x22]));
        assert_eq!(pin.to_string(), format!("two-hit={HEX}"));
        let odd = format!("+0{}", &HEX[2..]);
        for text in ["", "two-hit", "two-hit=", &format!("={HEX}"), &format!("x={}", &HEX[1..]), &format!("x={odd}")] {
            assert!(text.parse::<Pin>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_configuration_does_not_lose_its_pins() {
        #[derive(Deserialize)]
        struct File {
            pins: Pins,
        }
        let File { pins } = toml::from_str(&format!("[pins]\ntwo-hit = \"{HEX}\"")).unwrap();
        assert_eq!(pins.get("two-hit").map(|digest| digest.to_string()).as_deref(), Some(HEX));
        assert_eq!(pins.get("lru"), None);
        assert!(toml::from_str::<File>("[pins]\ntwo-hit = \"12\"").is_err());
    }
}
