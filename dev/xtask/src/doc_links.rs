//! Checks the links of all documents: each must lead to an existing file and anchor.
//!
//! Chapters of the book link only to chapters, every page of `docs` is a chapter, and the sources
//! contain the messages that the error index explains.

mod book;
pub(crate) mod document;
mod error_messages;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, ensure};

use crate::command::root;
use crate::source_files::{has_extension, read_files};
use document::Document;

/// The documents of the tree, by their paths from the root.
type Pages = BTreeMap<String, Document>;

/// Checks all documents and returns the number of links.
pub(crate) fn check_links() -> Result<String> {
    let root = root();
    let pages = read_pages(&root)?;
    let mut faults = Vec::new();
    let mut count = 0;
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !is_foreign(&link.target)) {
            count += 1;
            if let Some(fault) =
                find_fault(&pages, path, &link.target, |file| root.join(file).exists())
            {
                faults.push(format!("{path}:{}: {fault}", link.line));
            }
        }
    }
    faults.extend(book::find_faults(&pages));
    faults.extend(error_messages::find_faults(&root)?);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(format!("{count} links in {} documents", pages.len()))
}

/// Reads every document of the tree.
fn read_pages(root: &Path) -> Result<Pages> {
    let documents = read_files(root, |path| has_extension(path, &["md"]))?;
    let parsed = documents.into_iter().map(|document| {
        let page = Document::parse(&document.text);
        (document.path, page)
    });
    Ok(parsed.collect())
}

/// Returns true for a link that leaves the tree, or that rustdoc resolves (`crate::…`).
fn is_foreign(to: &str) -> bool {
    ["https:", "http:", "mailto:"]
        .iter()
        .any(|scheme| to.starts_with(scheme))
        || to.contains("::")
}

/// Returns the reason why the link `to` in the document `from` is broken, if it is.
fn find_fault(
    pages: &Pages,
    from: &str,
    to: &str,
    exists: impl Fn(&str) -> bool,
) -> Option<String> {
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let Some(file) = resolve_link(from, path) else {
        return Some(format!("`{to}` leads out of the repository"));
    };
    if !exists(&file) {
        return Some(format!("`{to}`: there is no {file}"));
    }
    let page = pages.get(&file)?;
    (!anchor.is_empty() && !page.anchors.contains(anchor))
        .then(|| format!("`{to}`: {file} has no heading `#{anchor}`"))
}

/// Returns the path, from the root, of the file that a relative link in the document `from` names.
fn resolve_link(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let mut file = PathBuf::from(from);
    file.pop();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => file.push(name),
            Component::ParentDir => {
                if !file.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(file.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let texts = [
            ("README.md", "# One\n[a](docs/a.md#two-words)\n"),
            ("docs/a.md", "# A\n## Two *words*\n"),
        ];
        let parsed = texts.map(|(path, text)| (path.to_owned(), Document::parse(text)));
        parsed.into_iter().collect()
    }

    #[test]
    fn links_lead_to_files_and_anchors() {
        let pages = pages();
        let exists = |file: &str| pages.contains_key(file) || file == "docs/chart.svg";
        let fault = |from, to| find_fault(&pages, from, to, exists);
        for (from, to) in [
            ("README.md", "docs/a.md"),
            ("README.md", "docs/a.md#two-words"),
            ("docs/a.md", "../README.md#one"),
            ("docs/a.md", "chart.svg"),
            ("docs/a.md", "./chart.svg"),
            ("docs/a.md", "#a"),
        ] {
            assert_eq!(fault(from, to), None, "{to}");
        }
        for (from, to, says) in [
            ("README.md", "a.md", "there is no a.md"),
            (
                "README.md",
                "docs/a.md#three",
                "docs/a.md has no heading `#three`",
            ),
            ("docs/a.md", "#one", "docs/a.md has no heading `#one`"),
            ("README.md", "../x.md", "leads out of the repository"),
            ("README.md", "/x.md", "leads out of the repository"),
        ] {
            assert!(fault(from, to).unwrap().contains(says), "{to}");
        }
    }

    #[test]
    fn only_links_within_the_tree_are_followed() {
        assert!(is_foreign("https://example.com/"));
        assert!(is_foreign("crate::client::Session"));
        assert!(!is_foreign("docs/a.md#two-words"));
    }
}
