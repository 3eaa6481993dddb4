//! Layer numbers, written as people write them: `0-1,3-59/2`.

use alloc::{string::String, string::ToString, vec::Vec};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::MAX_LAYER;

/// The layers that hold a cache type: at least one, ascending, each once.
///
/// The numbers are the engine's, so that it can map the bytes of a record to layers; what a record holds is ordered by them.
/// As text, a comma-separated list of numbers, ranges `FIRST-LAST` and stepped ranges `FIRST-LAST/STEP`:
///
/// ```
/// use reprise_core::model::Layers;
///
/// let hca: Layers = "0-1,3-59/2".parse()?;
/// assert_eq!(hca.count(), 31);
/// assert_eq!(hca.index_of(3), Some(2));
/// assert_eq!(hca.to_string(), "0-1,3-59/2");
/// # Ok::<(), reprise_core::model::LayersError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layers(Vec<u16>);

/// Why layer numbers were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayersError {
    /// No layer at all.
    #[error("no layers given: a type needs at least one layer")]
    Empty,
    /// Not a number and not a range.
    #[error("`{part}` is neither a layer number nor a range FIRST-LAST or FIRST-LAST/STEP")]
    Syntax {
        /// The item of the list.
        part: String,
    },
    /// A range that ends before it starts, or whose steps pass over its end.
    #[error("range `{part}` must step from its first layer up to exactly its last")]
    Range {
        /// The item of the list.
        part: String,
    },
    /// Not ascending.
    #[error("layer {layer} comes after layer {after}: list each layer once, in ascending order")]
    Order {
        /// The layer that comes too late.
        layer: u16,
        /// The one before it.
        after: u16,
    },
    /// Higher than [`MAX_LAYER`].
    #[error("layer {layer} is too high: the highest is {MAX_LAYER}")]
    TooHigh {
        /// What was given.
        layer: u16,
    },
}

impl Layers {
    /// Layers with these numbers.
    ///
    /// # Errors
    /// When there are none, when they do not ascend, when one is above [`MAX_LAYER`].
    pub fn new(numbers: impl IntoIterator<Item = u16>) -> Result<Self, LayersError> {
        let mut layers: Vec<u16> = Vec::new();
        for layer in numbers {
            if layer > MAX_LAYER {
                return Err(LayersError::TooHigh { layer });
            }
            if let Some(&after) = layers.last()
                && layer <= after
            {
                return Err(LayersError::Order { layer, after });
            }
            layers.push(layer);
        }
        if layers.is_empty() { Err(LayersError::Empty) } else { Ok(Self(layers)) }
    }

    /// How many there are; at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their numbers, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + '_ {
        self.0.iter().copied()
    }

    /// The place of a layer among these, or `None` if it is not one of them.
    pub fn index_of(&self, layer: u16) -> Option<usize> {
        self.0.binary_search(&layer).ok()
    }
}

impl FromStr for Layers {
    type Err = LayersError;

    fn from_str(text: &str) -> Result<Self, LayersError> {
        if text.trim().is_empty() {
            return Err(LayersError::Empty);
        }
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last, step) =
                parse_range(part).ok_or_else(|| LayersError::Syntax { part: part.to_string() })?;
            let steps_fit = step != 0 && last.checked_sub(first).is_some_and(|width| width.is_multiple_of(step));
            if !steps_fit {
                return Err(LayersError::Range { part: part.to_string() });
            }
            numbers.extend((first..=last).step_by(usize::from(step)));
        }
        Self::new(numbers)
    }
}

/// First, last and step of `N`, `FIRST-LAST` or `FIRST-LAST/STEP`.
fn parse_range(part: &str) -> Option<(u16, u16, u16)> {
    let Some((first, rest)) = part.split_once('-') else {
        let layer = part.parse().ok()?;
        return Some((layer, layer, 1));
    };
    let (last, step) = rest.split_once('/').unwrap_or((rest, "1"));
    let number = |text: &str| text.trim().parse().ok();
    Some((number(first)?, number(last)?, number(step)?))
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let [first, ..] = *rest {
            let step = rest.get(1).map_or(1, |second| second - first);
            let run = 1 + rest.windows(2).take_while(|pair| pair[1] - pair[0] == step).count();
            // Two layers some steps apart are no range to a reader, unless they are neighbours.
            let run = if run == 2 && step > 1 { 1 } else { run };
            let last = rest[run - 1];
            match (run, step) {
                (1, _) => write!(f, "{separator}{first}")?,
                (_, 1) => write!(f, "{separator}{first}-{last}")?,
                _ => write!(f, "{separator}{first}-{last}/{step}")?,
            }
            separator = ",";
            rest = &rest[run..];
        }
        Ok(())
    }
}

impl Serialize for Layers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Layers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = Layers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("layer numbers as text, such as \"0-31\" or \"0-1,3-59/2\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Layers, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}
