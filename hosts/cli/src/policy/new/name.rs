//! What a policy may be called.

use anyhow::{anyhow, bail};

use super::super::subject;

/// Bytes that hosts take of a name.
const MOST_BYTES: usize = 64;

/// Names that no crate may have: words of Rust, and crates that every other one knows or that the new one depends on.
const RESERVED: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "proc-macro",
    "pub",
    "ref",
    "reprise-core",
    "reprise-policy-sdk",
    "reprise-policy-testing",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Refuses a name that no crate, no component or no report could carry.
pub(super) fn check(name: &str) -> anyhow::Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) || !name.bytes().all(allowed) {
        bail!(
            "a policy is named by ASCII letters, digits, `-` and `_`, a letter first, as a crate is; `{name}` is not"
        );
    }
    if name.len() > MOST_BYTES {
        bail!("a policy's name has up to {MOST_BYTES} bytes, and `{name}` has {}", name.len());
    }
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        bail!("`{name}` means something in Rust or to the SDK: choose another name");
    }
    match subject::shipped().find(|shipped| shipped.eq_ignore_ascii_case(name)) {
        Some(shipped) => {
            Err(anyhow!("`{shipped}` is a shipped policy: choose another name, so that reports tell them apart"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_name_that_no_crate_can_have_is_not_taken() {
        for name in [
            "",
            "-a",
            "_a",
            "9lives",
            "a b",
            "a/b",
            "a.b",
            "..",
            "ü",
            "a\"",
            "fn",
            "Self",
            "test",
            "core",
            "lru",
            "reprise-core",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
        assert!(check(&"a".repeat(65)).is_err());
        for name in ["a", "Mine", "two-hit-2", "least_used", &"a".repeat(64)] {
            check(name).unwrap();
        }
    }
}
