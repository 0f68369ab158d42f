//! Conversion of plain text to `roff`, the format of `man`.
//!
//! A line without indentation is a heading, two spaces mark a paragraph, four or more verbatim text.
//! `` `words` `` of a paragraph are bold.

use clap_mangen::roff::{Inline, Roff, bold, roman};

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
    let mut page = Roff::new();
    // The empty argument is the date.
    let (name, section) = (escape_argument(name), section.to_string());
    let version = concat!("adit ", env!("CARGO_PKG_VERSION"));
    page.control("TH", [&name, &section, "\"\"", version]);
    let mut block = BlockKind::None;
    let mut blank = false;
    let mut is_bold = false;
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
            end_verbatim(&mut page);
        }
        match next {
            BlockKind::None => {
                page.control("SH", [escape_argument(line).as_str()]);
            }
            BlockKind::Paragraph => {
                if block != BlockKind::Paragraph || blank {
                    // `whatis` expects the name of a page right below its heading.
                    if block != BlockKind::None {
                        page.control("PP", []);
                    }
                    is_bold = false;
                }
                page.text(paragraph_parts(line.trim(), &mut is_bold));
            }
            BlockKind::Verbatim => {
                if block != BlockKind::Verbatim {
                    page.control("PP", [])
                        .control("RS", ["4"])
                        .control("nf", []);
                } else if blank {
                    page.text(Vec::<Inline>::new());
                }
                page.text([roman(line.strip_prefix(VERBATIM).unwrap_or(line))]);
            }
        }
        block = next;
        blank = false;
    }
    if block == BlockKind::Verbatim {
        end_verbatim(&mut page);
    }
    escape_typographic(&page.render())
}

/// Escapes the hyphens of an argument: the crate escapes only text.
fn escape_argument(argument: &str) -> String {
    argument.replace('-', "\\-")
}

fn end_verbatim(page: &mut Roff) {
    page.control("fi", []).control("RE", []);
}

/// Splits a line of a paragraph at its backquotes. Bold words may continue on the next line.
fn paragraph_parts(line: &str, is_bold: &mut bool) -> Vec<Inline> {
    let mut parts = Vec::new();
    for (i, part) in line.split('`').enumerate() {
        if i > 0 {
            *is_bold = !*is_bold;
        }
        if !part.is_empty() {
            parts.push(if *is_bold { bold(part) } else { roman(part) });
        }
    }
    parts
}

/// Escapes the characters that the crate leaves unchanged and that `troff` replaces by typographic ones, which
/// a shell does not accept. None of them is part of the crate's own requests.
fn escape_typographic(page: &str) -> String {
    page.replace('^', "\\(ha")
        .replace('~', "\\(ti")
        .replace('`', "\\(ga")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_page() {
        let text = "NAME\n\n  a-b - c\n\n  one `two\n  three` four\n\n    'x' \\\n\n    .y… ~/^`\n\nEND\n\n    z\n";
        let version = env!("CARGO_PKG_VERSION");
        let preamble = Roff::new().render();
        assert_eq!(
            to_page("a-b", '5', text),
            format!(
                "{preamble}.TH a\\-b 5 \"\" \"adit {version}\"\n.SH NAME\na\\-b \\- c\n.PP\none \\fBtwo\\fR\n\
                 \\fBthree\\fR four\n.PP\n.RS 4\n.nf\n\\*(Aqx\\*(Aq \\\\\n\n\\&.y… \\(ti/\\(ha\\(ga\n\
                 .fi\n.RE\n.SH END\n.PP\n.RS 4\n.nf\nz\n.fi\n.RE\n"
            )
        );
    }

    #[test]
    fn a_line_of_text_is_never_a_request() {
        for text in ["  .so /etc/passwd\n", "    'so /etc/passwd\n"] {
            let page = to_page("a", '5', text);
            assert!(
                !page
                    .lines()
                    .any(|line| line.starts_with(['.', '\'']) && line.contains("so /"))
            );
        }
    }
}
