//! What a component says of its making: the custom sections that tools for WebAssembly share.

use wasm_metadata::{AddMetadata, AddMetadataField};

use crate::make::Error;

/// Bytes before the first section.
const HEAD: usize = 8;
/// What a custom section begins with.
const CUSTOM: u8 = 0;

/// What is written into a component. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the component.
    pub name: Option<String>,
    /// Version of the component.
    pub version: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Who made it.
    pub authors: Option<String>,
    /// An SPDX expression.
    pub licenses: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// Revision of the source.
    pub revision: Option<String>,
    /// The language it is written in and its version, where the compiler does not say so itself.
    pub language: Option<(String, String)>,
}

impl Metadata {
    /// `component` with this in it.
    pub(crate) fn embed(&self, component: &[u8]) -> Result<Vec<u8>, Error> {
        let mut add = AddMetadata::default();
        if let Some(name) = &self.name {
            add.name = AddMetadataField::Set(name.clone());
        }
        add.language.extend(self.language.clone());
        let named = add.to_wasm(component).map_err(|error| Error::Metadata(format!("{error:#}")))?;
        let texts = [
            ("version", &self.version),
            ("description", &self.description),
            ("authors", &self.authors),
            ("licenses", &self.licenses),
            ("source", &self.source),
            ("revision", &self.revision),
        ];
        let texts: Vec<_> = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))).collect();
        replaced(&named, &texts).ok_or_else(|| Error::Metadata("a section has no end".to_owned()))
    }
}

/// The file with these custom sections at its end, in place of any of the same name.
fn replaced(file: &[u8], texts: &[(&str, &str)]) -> Option<Vec<u8>> {
    let (head, mut rest) = file.split_at_checked(HEAD)?;
    let mut written = head.to_vec();
    while let Some((&id, after_id)) = rest.split_first() {
        let (size, content) = number(after_id)?;
        let (content, after) = content.split_at_checked(size)?;
        let name = |content: &'_ [u8]| {
            let (size, content) = number(content)?;
            content.get(..size).map(<[u8]>::to_vec)
        };
        let goes = id == CUSTOM && texts.iter().any(|(text, _)| name(content).as_deref() == Some(text.as_bytes()));
        if !goes {
            written.extend_from_slice(&rest[..rest.len() - after.len()]);
        }
        rest = after;
    }
    for (name, text) in texts {
        let mut content = Vec::new();
        push_number(&mut content, name.len());
        content.extend_from_slice(name.as_bytes());
        content.extend_from_slice(text.as_bytes());
        written.push(CUSTOM);
        push_number(&mut written, content.len());
        written.extend_from_slice(&content);
    }
    Some(written)
}

/// An unsigned LEB128 of 32 bits, and what comes after it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (place, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[place + 1..]));
        }
    }
    None
}

fn push_number(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn metadata(version: &str) -> Metadata {
        Metadata { version: Some(version.into()), description: Some("d".repeat(200)), ..Metadata::default() }
    }

    #[test]
    fn metadata_written_twice_does_not_stand_there_twice() {
        let once = metadata("1").embed(EMPTY).unwrap();
        let twice = metadata("2").embed(&once).unwrap();
        assert_eq!(once.len(), twice.len());
        let found = |file: &[u8], text: &[u8]| file.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((found(&twice, b"version1"), found(&twice, b"version2"), found(&twice, b"description")), (0, 1, 1));
        assert_eq!(Metadata::default().embed(&twice).unwrap(), twice, "what is not given stays");
    }

    #[test]
    fn a_section_that_claims_more_than_the_file_is_not_read_past_its_end() {
        for torn in [
            &b"\0asm"[..],
            b"\0asm\x0d\0\x01\0\x00",
            b"\0asm\x0d\0\x01\0\x00\xff\xff\xff\xff\x0f",
            b"\0asm\x0d\0\x01\0\x00\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(replaced(torn, &[("version", "1")]), None);
        }
    }
}
