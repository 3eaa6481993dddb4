//! Between the caches of the reference model and records: what an engine's transfer kernels do.

use std::ops::Range;

use reprise::{Group, Record};
use reprise_core::{
    layout::{GroupLayout, Layout},
    model::{CacheType, Kind, Layers, ModelSpec},
};
use reprise_model::{Attention, Rows, Shape, State};

const VALUE_BYTES: usize = size_of::<f64>();

/// The model as the cache knows it. Its windows hold one row more than the next token reads, as engines keep them.
pub fn spec(shape: &Shape) -> ModelSpec {
    let layers = |wanted: &[Attention]| -> Layers {
        let numbers = shape.layers.iter().enumerate().filter(|(_, attention)| wanted.contains(attention));
        Layers::new(numbers.map(|(layer, _)| layer as u16)).unwrap()
    };
    let cache_type = |name: &str, group: &str, kind: Kind, layers: Layers, values: usize| CacheType {
        name: name.into(),
        group: group.into(),
        kind,
        layers,
        row_bytes: (values * VALUE_BYTES) as u32,
        row_format: "f64".into(),
    };
    let (csa, all) = (layers(&[Attention::Csa]), layers(&[Attention::Window, Attention::Csa, Attention::Hca]));
    let csa_rows = Kind::Compressed { ratio: shape.csa_ratio as u32 };
    let hca_rows = Kind::Compressed { ratio: shape.hca_ratio as u32 };
    let window_tokens = shape.window as u32;
    let overlap = Kind::State { rows: shape.csa_ratio as u32 };
    let overlap_values = 2 * (shape.head_dim + shape.index_head_dim);
    let mut groups = vec!["history".to_owned(), "window".to_owned()];
    let mut types = vec![
        cache_type("csa", "history", csa_rows, csa.clone(), shape.head_dim),
        cache_type("hca", "history", hca_rows, layers(&[Attention::Hca]), shape.head_dim),
        cache_type("indexer", "history", csa_rows, csa.clone(), shape.index_head_dim),
        cache_type("swa", "window", Kind::Windowed { window_tokens }, all, shape.head_dim),
        cache_type("csa-overlap", "window", overlap, csa, overlap_values),
    ];
    if shape.draft {
        let layer = Layers::new([shape.layers.len() as u16]).unwrap();
        groups.push("draft".into());
        types.push(cache_type("mtp-swa", "draft", Kind::Draft { window_tokens }, layer.clone(), shape.head_dim));
        let hidden = shape.hc_mult * shape.hidden;
        types.push(cache_type("mtp-hidden", "draft", Kind::DraftState { rows: 1 }, layer, hidden));
    }
    ModelSpec::new("reference", groups, types).unwrap()
}

/// Writes the record out of a state that has passed its position by no more than the record allows.
pub fn fill(layout: &Layout, state: &State, record: &Record, bytes: &mut [u8]) {
    bytes.fill(0);
    let layout = group(layout, record.group);
    let position = record.position_tokens as usize;
    each_extent(layout, |name, layer, rows, place| {
        let target = &mut bytes[place];
        match name {
            "csa" => put(target, &state.layers[layer].compressor.as_ref().unwrap().entries, rows_of(record, rows)),
            "hca" => put(target, &state.layers[layer].compressor.as_ref().unwrap().entries, rows_of(record, rows)),
            "indexer" => put(target, &state.layers[layer].indexer.as_ref().unwrap().entries, rows_of(record, rows)),
            "swa" => put_last(target, &state.layers[layer].window, position, rows),
            "csa-overlap" => {
                let layer = &state.layers[layer];
                let (main, index) = (layer.compressor.as_ref().unwrap(), layer.indexer.as_ref().unwrap());
                let row_bytes = target.len() / rows;
                for (row, target) in (position - rows..position).zip(target.chunks_exact_mut(row_bytes)) {
                    let (main, index) = (main.overlap.row(row).unwrap(), index.overlap.row(row).unwrap());
                    let (first, second) = target.split_at_mut(size_of_val(main));
                    encode(main, first);
                    encode(index, second);
                }
            }
            "mtp-swa" => put_last(target, &state.draft.as_ref().unwrap().window, position, rows),
            "mtp-hidden" => encode(state.draft.as_ref().unwrap().hidden.as_ref().unwrap(), target),
            name => panic!("the reference model has no type {name}"),
        }
    });
    assert!(record.group == Group::History || state.position == position, "a window is copied as the engine passes it");
}

/// Puts the record's rows into a state that stands at the record's position, or is to.
pub fn take(layout: &Layout, state: &mut State, record: &Record, bytes: &[u8]) {
    let layout = group(layout, record.group);
    let position = record.position_tokens as usize;
    each_extent(layout, |name, layer, rows, place| {
        let source = &bytes[place];
        match name {
            "csa" | "hca" => {
                get(source, &mut state.layers[layer].compressor.as_mut().unwrap().entries, rows_of(record, rows))
            }
            "indexer" => get(source, &mut state.layers[layer].indexer.as_mut().unwrap().entries, rows_of(record, rows)),
            "swa" => get_last(source, &mut state.layers[layer].window, position, rows, 0),
            "csa-overlap" => {
                let layer = &mut state.layers[layer];
                let main = &mut layer.compressor.as_mut().unwrap().overlap;
                let index = &mut layer.indexer.as_mut().unwrap().overlap;
                let main_bytes = main.width * VALUE_BYTES;
                for (row, source) in (position - rows..position).zip(source.chunks_exact(source.len() / rows)) {
                    main.set(row, &decode(&source[..main_bytes]));
                    index.set(row, &decode(&source[main_bytes..]));
                }
            }
            // The draft layer has no row of token 0: a row takes the token before its own.
            "mtp-swa" => get_last(source, &mut state.draft.as_mut().unwrap().window, position, rows, 1),
            "mtp-hidden" => state.draft.as_mut().unwrap().hidden = Some(decode(source)),
            name => panic!("the reference model has no type {name}"),
        }
    });
}

fn group(layout: &Layout, group: Group) -> &GroupLayout {
    layout.group(group.name()).expect("the cache asks for groups that the model has")
}

/// Calls with a type's name, a layer, its rows and where they lie.
fn each_extent(layout: &GroupLayout, mut visit: impl FnMut(&str, usize, usize, Range<usize>)) {
    for extent in layout.extents() {
        let cache_type = &layout.types()[extent.type_index];
        let bytes = extent.bytes.start as usize..extent.bytes.end as usize;
        visit(cache_type.name(), extent.layer.into(), cache_type.rows() as usize, bytes);
    }
}

/// The entries of a block that has so many.
fn rows_of(record: &Record, rows: usize) -> Range<usize> {
    record.block as usize * rows..(record.block as usize + 1) * rows
}

fn put(target: &mut [u8], rows: &Rows, range: Range<usize>) {
    let row_bytes = rows.width * VALUE_BYTES;
    for (index, target) in range.zip(target.chunks_exact_mut(row_bytes)) {
        encode(rows.row(index).expect("a block is saved when it is complete"), target);
    }
}

/// The last `count` rows before `position`, as far as there are any: the last one lies last.
fn put_last(target: &mut [u8], rows: &Rows, position: usize, count: usize) {
    let row_bytes = rows.width * VALUE_BYTES;
    for distance in 1..=count.min(position) {
        if let Some(row) = rows.row(position - distance) {
            encode(row, &mut target[(count - distance) * row_bytes..][..row_bytes]);
        }
    }
}

fn get(source: &[u8], rows: &mut Rows, range: Range<usize>) {
    let row_bytes = rows.width * VALUE_BYTES;
    for (index, source) in range.zip(source.chunks_exact(row_bytes)) {
        rows.set(index, &decode(source));
    }
}

/// Reads what [`put_last`] wrote: rows from `first` on, the first one that exists in a sequence.
fn get_last(source: &[u8], rows: &mut Rows, position: usize, count: usize, first: usize) {
    let row_bytes = rows.width * VALUE_BYTES;
    rows.clear(position.saturating_sub(count).max(first));
    for index in rows.first..position {
        let distance = position - index;
        rows.push(&decode(&source[(count - distance) * row_bytes..][..row_bytes]));
    }
}

fn encode(values: &[f64], bytes: &mut [u8]) {
    for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(VALUE_BYTES)) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

fn decode(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<VALUE_BYTES>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}
