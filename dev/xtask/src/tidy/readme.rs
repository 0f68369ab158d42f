//! The `README.md` of each library is the documentation of its `lib.rs`, so that the doctests
//! compile and run the example in it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::source_files::SourceFile;

/// Crates of other rings that are used as a library.
const EXTRA_LIBRARIES: &[&str] = &["app/adit-engine"];

/// Libraries whose documentation has no example yet. The list can only shrink.
const WITHOUT_EXAMPLE: &[&str] = &[];

/// Returns READMEs that are missing or differ from the documentation, and documentation without an
/// example.
pub(super) fn find_faults(sources: &[SourceFile]) -> Vec<String> {
    let mut faults = Vec::new();
    for library in library_sources(sources) {
        let (path, text) = render_readme(library);
        let there = sources.iter().find(|source| source.path == path);
        if there.is_none_or(|source| source.text != text) {
            faults.push(format!(
                "{path} differs from the documentation of lib.rs; `ADIT_BLESS=1 cargo xtask tidy` updates it"
            ));
        }
        let krate = path.trim_end_matches("/README.md");
        match (text.contains("```rust\n"), WITHOUT_EXAMPLE.contains(&krate)) {
            (false, false) => faults.push(format!("{krate}: the documentation has no example")),
            (true, true) => faults.push(format!(
                "{krate} has an example: remove it from the list of tidy"
            )),
            _ => {}
        }
    }
    faults
}

/// Writes the READMEs.
pub(super) fn write_readmes(root: &Path, sources: &[SourceFile]) -> Result<()> {
    for library in library_sources(sources) {
        let (path, text) = render_readme(library);
        fs::write(root.join(&path), text).with_context(|| path)?;
    }
    Ok(())
}

fn library_sources(sources: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    sources.iter().filter(|source| {
        source
            .path
            .strip_suffix("/src/lib.rs")
            .is_some_and(|krate| {
                krate.starts_with("proto/")
                    || krate.starts_with("io/")
                    || EXTRA_LIBRARIES.contains(&krate)
            })
    })
}

/// Returns the path and the text of a library's README.
fn render_readme(library: &SourceFile) -> (String, String) {
    let krate = library.path.trim_end_matches("/src/lib.rs");
    let name = krate.rsplit('/').next().unwrap_or(krate);
    let mut text = format!("# {name}\n\n");
    let (mut in_code, mut hidden) = (false, false);
    for line in library
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
    {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if let Some(info) = line.strip_prefix("```") {
            in_code = !in_code;
            hidden = in_code && !matches!(info, "" | "no_run" | "text" | "toml" | "sh");
            let info = match info {
                "" | "no_run" if in_code => "rust",
                other => other,
            };
            text.push_str(&format!("```{info}\n"));
        } else if in_code {
            // Lines that rustdoc hides are not for readers.
            if hidden || !(line == "#" || line.starts_with("# ")) {
                text.push_str(line);
                text.push('\n');
            }
        } else {
            // The title of the page is the crate's name.
            if line.starts_with('#') {
                text.push('#');
            }
            text.push_str(&strip_item_links(line));
            text.push('\n');
        }
    }
    text.push_str("\n## License\n\nMIT or Apache-2.0, at your option.\n");
    (format!("{krate}/README.md"), text)
}

/// Replaces rustdoc's links to items, `Item` and text, with what they show.
fn strip_item_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let Some((shown, after)) = from.get(1..).and_then(|inner| inner.split_once(']')) else {
            out.push_str(from);
            return out;
        };
        let target = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        rest = match target {
            Some((url, _)) if url.contains("://") => {
                out.push('[');
                from.get(1..).unwrap_or_default()
            }
            Some((_, behind)) => {
                out.push_str(shown);
                behind
            }
            None => {
                let code = shown.starts_with('`') && shown.ends_with('`');
                out.push_str(if code { shown } else { "[" });
                match code {
                    true => after,
                    false => from.get(1..).unwrap_or_default(),
                }
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(text: &str) -> SourceFile {
        SourceFile {
            path: "proto/adit-x/src/lib.rs".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_readme_shows_what_rustdoc_shows() {
        let docs = "//! Seals with [`Key`], see [the RFC](https://a.b/c).\n//!\n//! # Use\n//!\n\
            //! ```\n//! # hidden();\n//! shown();\n//! ```\n\nmod x;\n//! not this\n";
        let (path, text) = render_readme(&library(docs));
        assert_eq!(path, "proto/adit-x/README.md");
        assert_eq!(
            text,
            "# adit-x\n\nSeals with `Key`, see [the RFC](https://a.b/c).\n\n## Use\n\n\
            ```rust\nshown();\n```\n\n## License\n\nMIT or Apache-2.0, at your option.\n"
        );
    }

    #[test]
    fn an_old_readme_and_docs_without_an_example_are_faults() {
        let found = find_faults(&[library("//! Does it.\n")]);
        assert_eq!(found.len(), 2, "{found:?}");
        let lib = library("//! Does it.\n//!\n//! ```\n//! x();\n//! ```\n");
        let (path, text) = render_readme(&lib);
        assert_eq!(find_faults(&[lib, SourceFile { path, text }]), [""; 0]);
    }

    #[test]
    fn links_to_items_become_code() {
        assert_eq!(
            strip_item_links("a [`B`](crate::b) [c](d::e) [0]"),
            "a `B` c [0]"
        );
    }
}
