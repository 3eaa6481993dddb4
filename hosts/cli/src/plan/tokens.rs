//! Token ids of a prompt, from a file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// How a file holds token ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFormat {
    /// A JSON array, or decimal numbers between white space.
    Text,
    /// Little-endian 32-bit numbers.
    U32Le,
}

/// Why a file holds no prompt.
#[derive(Debug, Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("reading the tokens of {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no text.
    #[error("{} is not text: give --u32le if it holds little-endian 32-bit numbers", path.display())]
    NotText {
        /// Which.
        path: PathBuf,
    },
    /// It looks like JSON and is no array of token ids.
    #[error("{} is no JSON array of token ids", path.display())]
    Json {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Something between white space is no token id.
    #[error("{}, line {line}: token {number} is `{text}`, not a whole number from 0 to 4294967295", path.display())]
    NotANumber {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Of all tokens, from 1.
        number: usize,
        /// What is there, its first characters.
        text: String,
    },
    /// It ends within a number.
    #[error("{} has {len_bytes} bytes, which is no whole number of 32-bit tokens", path.display())]
    CutOff {
        /// Which.
        path: PathBuf,
        /// Its length.
        len_bytes: usize,
    },
    /// Nothing is in it.
    #[error("{} holds no tokens", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
}

/// The token ids in a file, at least one.
///
/// # Errors
/// When the file cannot be read, is empty, or holds anything but token ids; the message says where.
pub fn read_tokens(path: &Path, format: TokenFormat) -> Result<Vec<u32>, TokensError> {
    let bytes = fs::read(path).map_err(|source| TokensError::Read { path: path.to_owned(), source })?;
    let tokens = match format {
        TokenFormat::U32Le => binary(path, &bytes)?,
        TokenFormat::Text => {
            let text = str::from_utf8(&bytes).map_err(|_| TokensError::NotText { path: path.to_owned() })?;
            if text.trim_start().starts_with('[') {
                serde_json::from_str(text).map_err(|source| TokensError::Json { path: path.to_owned(), source })?
            } else {
                numbers(path, text)?
            }
        }
    };
    if tokens.is_empty() {
        return Err(TokensError::Empty { path: path.to_owned() });
    }
    Ok(tokens)
}

fn binary(path: &Path, bytes: &[u8]) -> Result<Vec<u32>, TokensError> {
    let (tokens, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(TokensError::CutOff { path: path.to_owned(), len_bytes: bytes.len() });
    }
    Ok(tokens.iter().map(|&token| u32::from_le_bytes(token)).collect())
}

fn numbers(path: &Path, text: &str) -> Result<Vec<u32>, TokensError> {
    let words = text.lines().zip(1..).flat_map(|(words, line)| words.split_whitespace().map(move |word| (word, line)));
    let parse = |((word, line), number): ((&str, usize), usize)| {
        word.parse().map_err(|_| TokensError::NotANumber {
            path: path.to_owned(),
            line,
            number,
            text: word.chars().take(32).collect(),
        })
    };
    words.zip(1..).map(parse).collect()
}
