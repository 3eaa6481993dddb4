//! Text from a file that nobody vouches for, made fit for a terminal.

/// Characters that are shown of a name or a line.
const LINE_CHARS: usize = 200;
/// Characters that are shown of a sentence, which may list names.
const SENTENCE_CHARS: usize = 4000;

/// `text` in one line: what could move the cursor or turn the direction of reading is shown as a dot, and what is too long is cut.
pub(super) fn shown(text: &str) -> String {
    cut(text.chars().map(|found| if is_harmless(found) { found } else { '·' }), LINE_CHARS)
}

/// The same of a message that may have several lines: they become one.
pub(super) fn sentence(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(words.chars().map(|found| if is_harmless(found) { found } else { '·' }), SENTENCE_CHARS)
}

fn cut(mut characters: impl Iterator<Item = char>, most: usize) -> String {
    let mut text: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        text.push('…');
    }
    text
}

/// No command to the terminal, and no mark that hides text or orders it from right to left.
fn is_harmless(found: char) -> bool {
    let turns =
        matches!(found, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !found.is_control() && !turns
}

#[cfg(test)]
mod tests {
    use super::{sentence, shown};

    #[test]
    fn a_name_does_not_command_the_terminal() {
        assert_eq!(shown("a\u{1b}[2Jb\nc\u{202e}d"), "a·[2Jb·c·d");
        assert_eq!(shown(&"ä".repeat(500)).chars().count(), LINE_AND_DOTS);
        assert_eq!(shown("two-hit 0.1.0"), "two-hit 0.1.0");
        assert_eq!(sentence("not valid:\n    0: at \u{1b}offset 3\n"), "not valid: 0: at ·offset 3");
    }

    const LINE_AND_DOTS: usize = super::LINE_CHARS + 1;
}
