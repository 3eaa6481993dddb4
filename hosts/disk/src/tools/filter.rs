//! Which records of a store are meant.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::record::Recovered;

/// Which records are meant: those that fit all of it. By default all do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only of these namespaces, by index.
    pub namespaces: Option<BTreeSet<u16>>,
    /// Only of this group.
    pub group: Option<u8>,
    /// Only at these token positions. The position of a record is where its block ends.
    pub positions: Range<u64>,
    /// Only those whose digest begins with these hexadecimal digits, in lower case.
    pub digest_prefix: String,
}

impl Default for Filter {
    fn default() -> Self {
        Self { namespaces: None, group: None, positions: 0..u64::MAX, digest_prefix: String::new() }
    }
}

impl Filter {
    /// Whether a record of `group` is meant.
    pub fn fits(&self, group: u8, record: &Recovered) -> bool {
        self.group.is_none_or(|wanted| wanted == group)
            && self.namespaces.as_ref().is_none_or(|wanted| wanted.contains(&record.namespace))
            && self.positions.contains(&record.position)
            && (self.digest_prefix.is_empty() || record.digest.to_string().starts_with(&self.digest_prefix))
    }
}
