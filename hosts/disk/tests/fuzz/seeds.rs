//! Inputs to start from: stores and archives as they are made, and each kind of damage once.

use crate::archive::whole_archive;
use crate::fixture::{Files, whole};

/// The files themselves.
fn files(files: &Files) -> Vec<u8> {
    let mut input = vec![0];
    for (place, bytes) in (0_u8..).zip(files) {
        if let Some(bytes) = bytes {
            input.push(place);
            input.extend_from_slice(&(bytes.len() as u32).to_le_bytes()[..3]);
            input.extend_from_slice(bytes);
        }
    }
    input
}

/// Changes to a whole store: operation and operands, as in `image.rs`.
fn damage(changes: &[&[u8]]) -> Vec<u8> {
    [&[1], changes.concat().as_slice()].concat()
}

/// Every seed of the target `open`, with its name.
pub fn of_open() -> Vec<(&'static str, Vec<u8>)> {
    let mut made = Files::default();
    made[0] = whole()[0].clone();
    let mut foreign = Files::default();
    foreign[11] = Some(b"something else".to_vec());
    let mut torn = Files::default();
    torn[0] = made[0].as_ref().map(|bytes| bytes[..4096].to_vec());
    vec![
        ("empty", Vec::new()),
        ("foreign", files(&foreign)),
        ("made", files(&made)),
        ("torn", files(&torn)),
        ("whole", files(&whole())),
        ("untouched", damage(&[])),
        // Slot 1 of the history: a byte of its entry, of its payload, of its trailer.
        ("entry", damage(&[&[1, 2, 0x88, 0x10, 3]])),
        ("payload", damage(&[&[1, 3, 0x10, 0x20, 3]])),
        ("trailer", damage(&[&[1, 3, 0xa0, 0x31, 3]])),
        ("superblock-half", damage(&[&[1, 0, 0, 0, 0]])),
        ("superblock-lost", damage(&[&[3, 0], &[1, 1, 0, 0, 0]])),
        ("headers-lost", damage(&[&[3, 0], &[3, 1], &[1, 2, 0, 0, 0], &[1, 5, 0, 0, 0]])),
        ("chunk-short", damage(&[&[2, 3, 0, 0x30]])),
        ("chunk-missing", damage(&[&[3, 4]])),
        ("table-short", damage(&[&[2, 2, 0xc0, 0x10]])),
        ("table-long", damage(&[&[2, 5, 0, 0x30], &[0, 5, 0, 0x20, 2, 7, 7]])),
        ("entries-swapped", damage(&[&[4, 2, 2, 0, 0x10, 0x80, 0, 0x80, 0x10]])),
        ("header-misplaced", damage(&[&[4, 2, 5, 0, 0, 0, 0x10, 0, 0]])),
        ("table-misplaced", damage(&[&[4, 2, 5, 0, 0, 0, 0x20, 0, 0], &[4, 7, 2, 0, 0, 0, 0x20, 0, 0]])),
        // A version, a feature, a number of slots, and of slots to a chunk, under a checksum that is right.
        ("newer", damage(&[&[0, 2, 8, 0, 1, 2], &[5, 2, 0]])),
        ("feature", damage(&[&[0, 1, 16, 0, 1, 4], &[5, 1, 0]])),
        ("more-slots", damage(&[&[0, 2, 72, 0, 4, 0xff, 0xff, 0xff, 0xff], &[5, 2, 0]])),
        ("other-chunks", damage(&[&[0, 2, 76, 0, 4, 1, 0, 0, 0], &[5, 2, 0]])),
        ("long-payload", damage(&[&[0, 5, 64, 0, 8, 0, 0, 0, 0xf0, 0, 0, 0, 0], &[5, 5, 0]])),
        // An entry with another namespace, and another digest, position and sequence, under a checksum that is right.
        ("other-namespace", damage(&[&[0, 2, 104, 0x10, 2, 1, 0], &[6, 2, 0]])),
        ("other-key", damage(&[&[0, 2, 0, 0x10, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 9], &[6, 2, 0]])),
        // A namespace with another check, and one that is cut off.
        ("other-check", damage(&[&[0, 1, 8, 0x10, 1, 9], &[7, 1, 0]])),
        ("namespace-short", damage(&[&[2, 1, 0x9d, 0x10]])),
        ("namespace-torn", damage(&[&[1, 1, 0x60, 0x10, 0]])),
    ]
}

/// Every seed of the target `archive`, with its name. The frames are two classes, two namespaces, records, the end.
pub fn of_archive() -> Vec<(&'static str, Vec<u8>)> {
    let sealed = |frame: u8, changes: &[&[u8]]| [&[1, frame], changes.concat().as_slice()].concat();
    vec![
        ("empty", Vec::new()),
        ("whole", [&[0], whole_archive().as_slice()].concat()),
        ("untouched", sealed(0xff, &[])),
        ("newer", sealed(0xff, &[&[0, 0, 8, 0, 1, 2], &[5, 0, 0]])),
        ("head", sealed(0xff, &[&[1, 0, 0, 0, 3]])),
        ("class", sealed(0, &[&[1, 0, 0x60, 0x10, 3]])),
        ("record", sealed(0xff, &[&[1, 0, 0, 0x40, 3]])),
        ("record-sealed", sealed(4, &[&[1, 0, 0, 0x40, 3]])),
        ("short", sealed(0xff, &[&[2, 0, 0, 0x50]])),
        // A class with as many slots as there are numbers, with records of 4 GiB less a page, and in another group.
        ("more-slots", sealed(0x80, &[&[0, 0, 0x68, 0x10, 4, 0xff, 0xff, 0xff, 0xff]])),
        (
            "long-payload",
            sealed(
                0x80,
                &[&[0, 0, 0x60, 0x10, 5, 0, 0xf0, 0xff, 0xff, 0], &[0, 0, 0xc0, 0x10, 5, 0, 0xf0, 0xff, 0xff, 0]],
            ),
        ),
        ("other-group", sealed(0x81, &[&[0, 0, 0x9c, 0x20, 1, 0]])),
        // A namespace of no tokens a block.
        ("no-tokens", sealed(0x82, &[&[0, 0, 0xa8, 0x30, 4, 0, 0, 0, 0]])),
        ("frame-twice", sealed(0xff, &[&[4, 0, 0, 0, 0x40, 0, 0x20, 0, 0x60]])),
    ]
}
