//! Conversion of plain text to `roff`, the format of `man`.
//!
//! A line without indentation is a heading, two spaces mark a paragraph, four or more verbatim text.
//! `` `words` `` of a paragraph are bold.

use std::fmt::Write;

/// Indentation of verbatim lines.
const VERBATIM: &str = "    ";

/// The kind of the current block.
#[derive(PartialEq, Eq)]
enum BlockKind {
    None,
    Paragraph,
    Verbatim,
}

/// Converts a page.
pub(super) fn to_page(name: &str, section: char, text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH {} {section} \"\" \"adit {version}\"\n",
        escape_roff(name)
    );
    let mut block = BlockKind::None;
    let mut blank = false;
    let mut bold = false;
    for line in text.lines() {
        if line.is_empty() {
            blank = true;
            continue;
        }
        let next = match line {
            _ if line.starts_with(VERBATIM) => BlockKind::Verbatim,
            _ if line.starts_with(' ') => BlockKind::Paragraph,
            _ => BlockKind::None,
        };
        if block == BlockKind::Verbatim && next != BlockKind::Verbatim {
            page.push_str(".fi\n.RE\n");
        }
        match next {
            BlockKind::None => {
                let _ = writeln!(page, ".SH {}", escape_roff(line));
            }
            BlockKind::Paragraph => {
                if block != BlockKind::Paragraph || blank {
                    // `whatis` expects the name of a page right below its heading.
                    if block != BlockKind::None {
                        page.push_str(".PP\n");
                    }
                    bold = false;
                }
                page.push_str(&convert_paragraph_line(line.trim(), &mut bold));
            }
            BlockKind::Verbatim => {
                if block != BlockKind::Verbatim {
                    page.push_str(".PP\n.RS 4\n.nf\n");
                } else if blank {
                    page.push('\n');
                }
                let line = line.strip_prefix(VERBATIM).unwrap_or(line);
                let _ = writeln!(page, "{}", escape_roff(line));
            }
        }
        block = next;
        blank = false;
    }
    if block == BlockKind::Verbatim {
        page.push_str(".fi\n.RE\n");
    }
    page
}

/// Converts a line of a paragraph. Bold words may continue on the next line.
fn convert_paragraph_line(line: &str, bold: &mut bool) -> String {
    let mut text = String::new();
    for (i, part) in line.split('`').enumerate() {
        if i > 0 {
            *bold = !*bold;
            text.push_str(if *bold { "\\fB" } else { "\\fR" });
        }
        text.push_str(&escape_roff(part));
    }
    text.push('\n');
    text
}

/// Escapes text, so that it contains no `roff` commands.
fn escape_roff(text: &str) -> String {
    let mut escaped = String::new();
    if text.starts_with(['.', '\'']) {
        escaped.push_str("\\&");
    }
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            c if c.is_ascii() => escaped.push(c),
            c => {
                let _ = write!(escaped, "\\[u{:04X}]", u32::from(c));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_page() {
        let text = "NAME\n\n  a - b\n\n  one `two\n  three` four\n\n    'x' \\\n\n    .y…\n\nEND\n\n    z\n";
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            to_page("a", '5', text),
            format!(
                ".TH a 5 \"\" \"adit {version}\"\n.SH NAME\na \\- b\n.PP\none \\fBtwo\nthree\\fR four\n\
                 .PP\n.RS 4\n.nf\n\\&\\(aqx\\(aq \\e\n\n\\&.y\\[u2026]\n.fi\n.RE\n\
                 .SH END\n.PP\n.RS 4\n.nf\nz\n.fi\n.RE\n"
            )
        );
    }
}
