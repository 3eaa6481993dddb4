//! Fields of a record: JSON values that are checked by name when they are used, so that a message can say which field is
//! wrong and how. Nothing nested is kept, so a record costs little more than its ids.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::RecordFault;

/// Latest time of a trace: 285 years in microseconds, exact in a double.
const MAX_TIME_US: u64 = 1 << 53;

/// A field that should hold a number or text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(String),
    /// Anything else, in words.
    Other(&'static str),
}

impl Scalar {
    /// A count or id: a whole number from 0 to `max`. `12.0` is one, as programs that know only doubles write it.
    pub(super) fn count(&self, field: &'static str, max: u64) -> Result<u64, RecordFault> {
        let count = match *self {
            Self::Unsigned(count) => count,
            Self::Float(value) if value >= 0.0 && value.fract() == 0.0 => value as u64, // saturates
            Self::Negative(_) => return Err(self.negative(field)),
            Self::Float(value) if value < 0.0 => return Err(self.negative(field)),
            _ => return Err(self.mistyped(field, "a whole number")),
        };
        if count > max { Err(self.too_large(field, max)) } else { Ok(count) }
    }

    /// A time in microseconds, rounded, from a number of units of `unit_us` microseconds.
    pub(super) fn time_us(&self, field: &'static str, unit_us: f64) -> Result<u64, RecordFault> {
        let units = match *self {
            Self::Unsigned(units) => units as f64,
            Self::Negative(units) => units as f64,
            Self::Float(units) => units,
            _ => return Err(self.mistyped(field, "a number")),
        };
        let time_us = (units * unit_us).round();
        if units < 0.0 {
            Err(self.negative(field))
        } else if time_us > MAX_TIME_US as f64 {
            Err(self.too_large(field, MAX_TIME_US / unit_us as u64))
        } else {
            Ok(time_us as u64)
        }
    }

    /// What the field holds, for a message.
    pub(super) fn found(&self) -> String {
        match self {
            Self::Unsigned(value) => value.to_string(),
            Self::Negative(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(_) => "a string".into(),
            Self::Other(found) => (*found).into(),
        }
    }

    pub(super) fn mistyped(&self, field: &'static str, wanted: &'static str) -> RecordFault {
        RecordFault::Type { field, found: self.found(), wanted }
    }

    fn negative(&self, field: &'static str) -> RecordFault {
        RecordFault::Negative { field, value: self.found() }
    }

    fn too_large(&self, field: &'static str, max: u64) -> RecordFault {
        RecordFault::TooLarge { field, value: self.found(), max }
    }
}

/// A record: a JSON object. (A derived `Deserialize` alone would take a list for one, field by field.)
pub(super) struct Object<T>(pub(super) T);

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// The value of a field that must be there.
pub(super) fn required<'a, T>(value: &'a Option<T>, field: &'static str) -> Result<&'a T, RecordFault> {
    value.as_ref().ok_or(RecordFault::Missing(field))
}

/// The value of a count that nothing depends on: none if it is not one.
pub(super) fn optional_count(value: &Option<Scalar>) -> Option<u32> {
    value.as_ref()?.count("", u64::from(u32::MAX)).ok().map(|count| count as u32)
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(u64::try_from(value).map_or(Scalar::Negative(value), Scalar::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other(if value { "true" } else { "false" }))
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an object"))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// A field that should hold a list. The first entry that is none of `T` is remembered, and the rest read over.
#[derive(Debug)]
pub(super) enum List<T> {
    Good(Vec<T>),
    /// The index of a bad entry, and the entry.
    BadEntry(usize, Scalar),
    /// No list at all.
    Other(Scalar),
}

/// What an entry of a [`List`] may be.
pub(super) trait Entry: Sized {
    /// Reads one entry; the inner error is what was found instead.
    fn read<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<Option<Result<Self, Scalar>>, A::Error>;
}

/// A block id or token id.
impl Entry for u64 {
    fn read<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<Option<Result<Self, Scalar>>, A::Error> {
        Ok(list.next_element::<Scalar>()?.map(|entry| match entry {
            Scalar::Unsigned(id) => Ok(id),
            other => Err(other),
        }))
    }
}

/// A run of ids: the first, and how many.
impl Entry for (u64, u64) {
    fn read<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<Option<Result<Self, Scalar>>, A::Error> {
        Ok(list.next_element::<List<u64>>()?.map(|entry| match entry {
            List::Good(run) => <[u64; 2]>::try_from(run).map(Into::into).map_err(|_| Scalar::Other("a list")),
            List::BadEntry(_, entry) | List::Other(entry) => Err(entry),
        }))
    }
}

/// The entries of a list that must be there and be good.
pub(super) fn required_list<T>(
    value: Option<List<T>>,
    field: &'static str,
    wanted: &'static str,
) -> Result<Vec<T>, RecordFault> {
    match value.ok_or(RecordFault::Missing(field))? {
        List::Good(entries) => Ok(entries),
        List::BadEntry(index, entry @ Scalar::Negative(_)) => {
            Err(RecordFault::Negative { field, value: format!("{} (entry {index})", entry.found()) })
        }
        List::BadEntry(index, entry) => {
            Err(RecordFault::Type { field, found: format!("a list with {} (entry {index})", entry.found()), wanted })
        }
        List::Other(value) => Err(value.mistyped(field, wanted)),
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Entry> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = T::read(&mut list)? {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(entry) => {
                    while list.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(List::BadEntry(entries.len(), entry));
                }
            }
        }
        Ok(List::Good(entries))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<List<T>, E> {
        ScalarVisitor.visit_u64(value).map(List::Other)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<List<T>, E> {
        ScalarVisitor.visit_i64(value).map(List::Other)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<List<T>, E> {
        ScalarVisitor.visit_f64(value).map(List::Other)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<List<T>, E> {
        ScalarVisitor.visit_str(value).map(List::Other)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<List<T>, E> {
        ScalarVisitor.visit_bool(value).map(List::Other)
    }

    fn visit_unit<E: de::Error>(self) -> Result<List<T>, E> {
        ScalarVisitor.visit_unit().map(List::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
        ScalarVisitor.visit_map(map).map(List::Other)
    }
}

impl<'de, T: Entry> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}
