//! The catalogue: a header page, then one record a namespace, in the order of their indices.

use reprise_core::Digest;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::page::{self, HeaderFault};
use super::{PAGE_BYTES, checksum};
use crate::error::StoreError;
use crate::record::NamespaceRecord;

const MAGIC: [u8; 8] = *b"REPRCAT\0";
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"NSPC");
/// The longest text of a record, in bytes.
const MAX_TEXT_BYTES: usize = u16::MAX as usize;
/// The longest record, in bytes.
pub const MAX_RECORD_BYTES: usize = size_of::<Head>() + 4 * MAX_TEXT_BYTES + 8;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: U32,
    /// Bytes of the whole record, checksum included.
    len_bytes: U32,
    check: U64,
    salt_hash: [u8; 32],
    rank: U32,
    ranks: U32,
    block_tokens: U32,
    index: U16,
    /// Bytes of model, revision, adapter and extensions, which follow in this order.
    texts: [U16; 4],
    reserved: U16,
}

/// The header page.
pub fn encode_header() -> Box<[u8; PAGE_BYTES]> {
    page::seal(MAGIC, &[])
}

/// Whether `bytes` begin with a catalogue's header page.
pub fn check_header(bytes: &[u8]) -> Result<(), HeaderFault> {
    page::open(bytes, MAGIC).map(|_| ())
}

/// The record of namespace `index`.
pub fn encode(index: u16, namespace: &NamespaceRecord) -> Result<Vec<u8>, StoreError> {
    let texts = [&namespace.model, &namespace.revision, &namespace.adapter, &namespace.extensions];
    if let Some(text) = texts.iter().find(|text| text.len() > MAX_TEXT_BYTES) {
        return Err(StoreError::InvalidNamespace {
            model: namespace.model.chars().take(80).collect(),
            why: format!("one of its texts has {} bytes, and {MAX_TEXT_BYTES} are possible", text.len()),
        });
    }
    let len_bytes = size_of::<Head>() + texts.iter().map(|text| text.len()).sum::<usize>() + 8;
    let head = Head {
        magic: RECORD_MAGIC.into(),
        len_bytes: (len_bytes as u32).into(),
        check: namespace.check.into(),
        salt_hash: namespace.salt_hash.0,
        rank: namespace.rank.into(),
        ranks: namespace.ranks.into(),
        block_tokens: namespace.block_tokens.into(),
        index: index.into(),
        texts: texts.map(|text| U16::new(text.len() as u16)),
        reserved: 0.into(),
    };
    let mut record = Vec::with_capacity(len_bytes);
    record.extend_from_slice(head.as_bytes());
    texts.iter().for_each(|text| record.extend_from_slice(text.as_bytes()));
    let sum = checksum::catalogue(index, &record);
    record.extend_from_slice(&sum.to_le_bytes());
    Ok(record)
}

/// Appends the namespaces that lie one behind the other at the start of `bytes`, up to the first record that is not sound or
/// not there in full. Returns how many bytes they take. The first has the index that is next in the list.
pub fn decode(bytes: &[u8], namespaces: &mut Vec<NamespaceRecord>) -> usize {
    let mut end = 0;
    while let Ok(index) = u16::try_from(namespaces.len())
        && index < u16::MAX
        && let Some((namespace, len_bytes)) = decode_record(&bytes[end..], index)
    {
        namespaces.push(namespace);
        end += len_bytes;
    }
    end
}

/// One record with its index, if `bytes` begin with one that is sound.
pub fn decode_one(bytes: &[u8]) -> Option<(u16, NamespaceRecord)> {
    let (head, _) = Head::ref_from_prefix(bytes).ok()?;
    let index = head.index.get();
    decode_record(bytes, index).map(|(namespace, _)| (index, namespace))
}

fn decode_record(bytes: &[u8], index: u16) -> Option<(NamespaceRecord, usize)> {
    let (head, _) = Head::ref_from_prefix(bytes).ok()?;
    let len_bytes = head.len_bytes.get() as usize;
    let texts = head.texts.map(|len| usize::from(len.get()));
    if head.magic.get() != RECORD_MAGIC
        || head.index.get() != index
        || len_bytes != size_of::<Head>() + texts.iter().sum::<usize>() + 8
    {
        return None;
    }
    let (record, sum) = bytes.get(..len_bytes)?.split_at(len_bytes - 8);
    if sum != checksum::catalogue(index, record).to_le_bytes() {
        return None;
    }
    let mut rest = &record[size_of::<Head>()..];
    let mut text = |len: usize| {
        let (text, behind) = rest.split_at(len);
        rest = behind;
        String::from_utf8(text.to_vec()).ok()
    };
    let namespace = NamespaceRecord {
        check: head.check.get(),
        model: text(texts[0])?,
        revision: text(texts[1])?,
        salt_hash: Digest(head.salt_hash),
        adapter: text(texts[2])?,
        rank: head.rank.get(),
        ranks: head.ranks.get(),
        block_tokens: head.block_tokens.get(),
        extensions: text(texts[3])?,
    };
    Some((namespace, len_bytes))
}
