//! The layout of one group's records.

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use super::{section, slot_bytes};
use crate::{
    Digest,
    model::{CacheType, Group, Kind, Layers, Role, fingerprint},
};

/// What lies where in the records of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLayout {
    name: String,
    role: Role,
    fingerprint: Digest,
    record_bytes: u64,
    types: Vec<TypeLayout>,
    sections: Vec<u64>,
}

/// What lies where of one type in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    name: String,
    kind: Kind,
    layers: Layers,
    rows: u32,
    row_bytes: u32,
    start: u64,
}

/// The rows of one type in one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Place of the type in [`GroupLayout::types`].
    pub type_index: usize,
    /// The layer's number.
    pub layer: u16,
    /// Where its rows lie in a record.
    pub bytes: Range<u64>,
}

impl GroupLayout {
    pub(super) fn new<'a>(
        group: &Group,
        types: impl Iterator<Item = &'a CacheType> + Clone,
        block_tokens: u32,
    ) -> Self {
        let fingerprint = fingerprint(group.role, block_tokens, types.clone());
        let mut record_bytes = 0;
        let types: Vec<TypeLayout> = types
            .map(|cache_type| {
                let layout = TypeLayout::new(cache_type, block_tokens, record_bytes);
                record_bytes = layout.bytes().end;
                layout
            })
            .collect();
        let sections = section::ends(&types, record_bytes);
        Self { name: group.name.clone(), role: group.role, fingerprint, record_bytes, types, sections }
    }

    /// For instance `history`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its records are.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What must be equal for a record to be readable: covers order, kinds, layers and rows of the types, their formats, and the
    /// block. See `model/fingerprint.rs` for the bytes hashed.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// Bytes of a record's payload.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Bytes that a record occupies in a store.
    pub fn slot_bytes(&self) -> u64 {
        slot_bytes(self.record_bytes)
    }

    /// The types, in the order of the record.
    pub fn types(&self) -> &[TypeLayout] {
        &self.types
    }

    /// The type of this name.
    pub fn type_layout(&self, name: &str) -> Option<&TypeLayout> {
        self.types.iter().find(|cache_type| cache_type.name == name)
    }

    /// Where the rows of a type in a layer lie, by the type's name and the layer's number.
    pub fn extent(&self, type_name: &str, layer: u16) -> Option<Range<u64>> {
        self.type_layout(type_name)?.layer_bytes(layer)
    }

    /// All extents, in the order of the record: together they are the record, without gap or overlap.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.types.iter().enumerate().flat_map(|(type_index, cache_type)| {
            let bytes = (0..).map(|index| cache_type.extent(index));
            cache_type.layers.iter().zip(bytes).map(move |(layer, bytes)| Extent { type_index, layer, bytes })
        })
    }

    /// Where the sections end that a record is checksummed by, ascending; the last is [`GroupLayout::record_bytes`].
    ///
    /// A section is a run of whole layers, of one type unless a type is too small for a section of its own, with its end rounded
    /// down to a page. It has at least 64 KiB; a record that is too small for two has one.
    pub fn sections(&self) -> &[u64] {
        &self.sections
    }

    /// Where a section lies.
    ///
    /// # Panics
    /// When there is no such section.
    pub fn section(&self, index: usize) -> Range<u64> {
        let start = index.checked_sub(1).map_or(0, |before| self.sections[before]);
        start..self.sections[index]
    }

    /// The sections that hold any of `bytes`: those to read and check so that these bytes can be trusted. Bytes past the record
    /// are in none.
    pub fn sections_of(&self, bytes: Range<u64>) -> Range<usize> {
        if bytes.is_empty() {
            return 0..0;
        }
        let first = self.sections.partition_point(|&end| end <= bytes.start);
        let last = self.sections.partition_point(|&end| end < bytes.end);
        first..self.sections.len().min(last + 1)
    }
}

impl TypeLayout {
    fn new(cache_type: &CacheType, block_tokens: u32, start: u64) -> Self {
        Self {
            name: cache_type.name.clone(),
            kind: cache_type.kind,
            layers: cache_type.layers.clone(),
            rows: cache_type.kind.rows(block_tokens),
            row_bytes: cache_type.row_bytes,
            start,
        }
    }

    /// For instance `csa`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its rows stand for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The layers that have it, in the order of the record.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Rows of one layer in a record.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> u32 {
        self.row_bytes
    }

    /// Where all its layers lie in a record.
    pub fn bytes(&self) -> Range<u64> {
        self.start..self.start + self.layer_len() * self.layers.count() as u64
    }

    /// Where a layer's rows lie in a record, by the layer's number; `None` if the layer does not have this type.
    pub fn layer_bytes(&self, layer: u16) -> Option<Range<u64>> {
        self.layers.index_of(layer).map(|index| self.extent(index))
    }

    /// Rows of one layer that a hit of `position_tokens` needs: of a window, no more than the position, because rows before the
    /// start of the prompt do not exist; of other kinds all rows.
    pub fn rows_needed(&self, position_tokens: u32) -> u32 {
        match self.kind {
            Kind::Windowed { window_tokens } | Kind::Draft { window_tokens } => window_tokens.min(position_tokens),
            Kind::Compressed { .. } | Kind::State { .. } | Kind::DraftState { .. } => self.rows,
        }
    }

    /// Where in a record the rows lie that [`TypeLayout::rows_needed`] counts, by the layer's number.
    ///
    /// They are the last of the layer's rows: the last row of a window is always that of the last token, so that a row's place
    /// depends on its distance from the position only. What lies before them is to be zero.
    pub fn needed_bytes(&self, layer: u16, position_tokens: u32) -> Option<Range<u64>> {
        let bytes = self.layer_bytes(layer)?;
        let needed_len = u64::from(self.rows_needed(position_tokens)) * u64::from(self.row_bytes);
        Some(bytes.end - needed_len..bytes.end)
    }

    /// The extent of the `index`-th of its layers.
    pub(super) fn extent(&self, index: usize) -> Range<u64> {
        let start = self.start + self.layer_len() * index as u64;
        start..start + self.layer_len()
    }

    /// Bytes of one layer.
    fn layer_len(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.row_bytes)
    }
}
