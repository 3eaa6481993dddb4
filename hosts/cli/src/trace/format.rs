//! The formats a trace may be in, and how to tell them apart.

use std::fmt;
use std::str::FromStr;

/// A trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Mooncake JSONL: `timestamp` (ms), `input_length`, `hash_ids` of 512 tokens, shared by the whole trace
    /// (github.com/kvcache-ai/Mooncake, `FAST25-release/traces`).
    Mooncake,
    /// kv-cache-tester sessions re-coded as JSONL: a header (`trace`, `block_size`) before the requests (`t`, `in`,
    /// `ref`, `lcp`, `new`) of each session.
    Sessions,
    /// The session files of kv-cache-tester (github.com/callanjfox/kv-cache-tester, `traces/`): one JSON object each,
    /// with all ids written out and sub-agents nested.
    KvCacheTester,
    /// Qwen-Bailian JSONL: `chat_id`, `timestamp` (s), `input_length`, `hash_ids` of 16 tokens
    /// (github.com/alibaba-edu/qwen-bailian-usagetraces-anon).
    Bailian,
}

impl Format {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Mooncake, "mooncake"),
        (Self::Sessions, "sessions"),
        (Self::KvCacheTester, "kv-cache-tester"),
        (Self::Bailian, "bailian"),
    ];

    /// The names that [`FromStr`] takes, for messages.
    pub(super) const LIST: &'static str = "mooncake, sessions, kv-cache-tester, bailian";

    /// Tokens of a block where the trace does not say; none if it must.
    pub(super) fn default_block_tokens(self) -> Option<u32> {
        match self {
            Self::Mooncake => Some(512),
            Self::Bailian => Some(16),
            Self::Sessions | Self::KvCacheTester => None,
        }
    }

    /// The format of what begins with `head`: the keys of the first JSON object that says. Objects need not be complete
    /// nor on one line, and a broken one before it does no harm.
    pub(super) fn recognise(head: &[u8]) -> Option<Self> {
        let mut rest = head;
        loop {
            let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
            rest = &rest[start..];
            if let Some(format) = Keys::of(rest).format() {
                return Some(format);
            }
            rest = &rest[rest.iter().position(|&byte| byte == b'\n')?..];
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(format, _)| format == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// A name that is no format.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no trace format: {list}", list = Format::LIST)]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.iter().find(|(_, known)| *known == name);
        named.map(|(format, _)| *format).ok_or_else(|| UnknownFormat(name.into()))
    }
}

/// The keys of a JSON object that may be cut short, and the first byte of each value.
#[derive(Default)]
struct Keys<'a>(Vec<(&'a [u8], u8)>);

impl<'a> Keys<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut keys = Vec::new();
        let mut depth = 0_u32;
        let mut at = 0;
        let mut last_string: Option<&[u8]> = None;
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let Some(len) = string_len(&text[at..]) else { break };
                    last_string = Some(&text[at..at + len]);
                    at += len + 1;
                }
                b':' if depth == 1 => {
                    let value = text[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                    keys.extend(last_string.take().zip(value.copied()));
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        Self(keys)
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == key.as_bytes())
    }

    fn format(&self) -> Option<Format> {
        if self.has("chat_id") {
            Some(Format::Bailian)
        } else if self.0.contains(&(b"requests", b'[')) {
            Some(Format::KvCacheTester)
        } else if ["hash_ids", "input_length"].iter().any(|key| self.has(key)) {
            Some(Format::Mooncake)
        } else if ["trace", "block_size", "ref", "lcp"].iter().any(|key| self.has(key)) {
            Some(Format::Sessions)
        } else if self.has("timestamp") {
            Some(Format::Mooncake)
        } else {
            None
        }
    }
}

/// The length of a JSON string whose opening quote was read; none if it does not end, or not on its line.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\n' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_is_taken_for_another() {
        for (text, format) in [
            (r#"{"timestamp": 0, "input_length": 5, "hash_ids": [1]}"#, Some(Format::Mooncake)),
            (r#"{"hash_ids": [1,2,3"#, Some(Format::Mooncake)),
            (r#"{"timestamp": 0, "block_size": 64, "input_length": 5, "hash_ids": [1]}"#, Some(Format::Mooncake)),
            (r#"{"timestamp": 0, "type": "chat_id", "x": {"chat_id": 1}}"#, Some(Format::Mooncake)),
            (r#"{"chat_id": 1, "timestamp": 0.5, "hash_ids": [1]}"#, Some(Format::Bailian)),
            (r#"{"hash_ids": [1], "timestamp": 0.5, "chat_id": 1}"#, Some(Format::Bailian)),
            (r#"{"trace": "a", "block_size": 64, "requests": 3}"#, Some(Format::Sessions)),
            (r#"{"block_size": 64}"#, Some(Format::Sessions)),
            (r#"{"t": 0, "in": 5, "ref": -1, "lcp": 0, "new": []}"#, Some(Format::Sessions)),
            ("{\n  \"id\": \"a\",\n  \"block_size\": 64,\n  \"requests\": [\n", Some(Format::KvCacheTester)),
            (r#"{"id":"a\"trace\":","requests":[{"timestamp":0}]}"#, Some(Format::KvCacheTester)),
            ("not json\n{\"timestamp\": 0, \"inp\n{\"chat_id\": 1}\n", Some(Format::Mooncake)),
            ("{\"timest\n{\"chat_id\": 1}\n", Some(Format::Bailian)),
            (r#"{"t": 0, "tokens": [1]}"#, None),
            ("[1, 2]\n", None),
            ("\n  \n", None),
            ("", None),
        ] {
            let found = Format::recognise(text.as_bytes());
            assert_eq!(found, format, "{text}");
        }
    }

    #[test]
    fn a_name_is_never_another_format_than_it_prints() {
        for (format, name) in Format::ALL {
            assert_eq!(format.to_string(), name);
            assert_eq!(name.parse::<Format>().unwrap(), format);
            assert!(Format::LIST.contains(name));
        }
        let message = "azure".parse::<Format>().unwrap_err().to_string();
        assert_eq!(message, "`azure` is no trace format: mooncake, sessions, kv-cache-tester, bailian");
    }
}
