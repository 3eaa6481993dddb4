//! Text inside HTML.

/// Text as an element or attribute may hold it.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Would turn the direction of what follows, or is nothing to be seen.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_taken_for_markup() {
        assert_eq!(escaped("<b a='\"&\">\u{202e}\n"), "&lt;b a=&#39;&quot;&amp;&quot;&gt;\u{fffd}\u{fffd}");
    }
}
