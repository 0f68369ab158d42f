//! The book: every page of `docs` is a chapter, and chapters link only to chapters.

use std::collections::BTreeSet;

use super::{Pages, is_foreign, resolve_link};

/// The folder of the book, and its table of contents.
const FOLDER: &str = "docs/";
const CONTENTS: &str = "docs/SUMMARY.md";
/// Pages for contributors, and the list of a folder for readers of the repository.
const INTERNAL: &[&str] = &[
    "docs/examples/README.md",
    "docs/internals.md",
    "docs/lexicon.md",
];

/// Returns pages that the table of contents does not name, and links that leave the book, which are
/// broken in a built book.
pub(super) fn find_faults(pages: &Pages) -> Vec<String> {
    let Some(contents) = pages.get(CONTENTS) else {
        return vec![format!("{CONTENTS} does not exist")];
    };
    let chapters: BTreeSet<String> = contents
        .links
        .iter()
        .filter_map(|link| resolve_link(CONTENTS, &link.target))
        .collect();
    let mut faults = Vec::new();
    for (path, page) in pages.iter().filter(|(path, _)| path.starts_with(FOLDER)) {
        if path == CONTENTS || INTERNAL.contains(&&**path) {
            continue;
        }
        if !chapters.contains(path) {
            faults.push(format!("{path}: {CONTENTS} does not name it"));
        }
        for link in page.links.iter().filter(|link| !is_foreign(&link.target)) {
            let file = link.target.split('#').next().unwrap_or_default();
            let Some(to) = resolve_link(path, file) else {
                continue;
            };
            let is_shown = if to.ends_with(".md") {
                chapters.contains(&to)
            } else {
                to.starts_with(FOLDER)
            };
            if !is_shown {
                faults.push(format!(
                    "{path}:{}: `{}` leads out of the book; name the file without a link",
                    link.line, link.target
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::*;

    #[test]
    fn pages_are_chapters_and_lead_to_chapters() {
        let texts = [
            ("README.md", "[anything](docs/lexicon.md)"),
            (CONTENTS, "- [A](book/a.md)\n- [B](b.md)\n"),
            (
                "docs/book/a.md",
                "[b](../b.md#c) [d](../chart.svg) [e](../../README.md)",
            ),
            ("docs/b.md", "[f](https://example.com) [g](lexicon.md)"),
            ("docs/c.md", ""),
            ("docs/lexicon.md", "[h](../README.md)"),
        ];
        let parsed = texts.map(|(path, text)| (path.to_owned(), Document::parse(text)));
        let faults = find_faults(&parsed.into_iter().collect());
        let out = |at: &str| format!("{at} leads out of the book; name the file without a link");
        assert_eq!(
            faults,
            [
                out("docs/b.md:1: `lexicon.md`"),
                out("docs/book/a.md:1: `../../README.md`"),
                "docs/c.md: docs/SUMMARY.md does not name it".to_owned(),
            ]
        );
    }
}
