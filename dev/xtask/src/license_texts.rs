//! `THIRD-PARTY-LICENSES.txt`: the licences of all crates in the release graph of `adit`, as the
//! crates ship them.
//!
//! Where a crate offers alternatives, one is chosen, Apache-2.0 first: its text is the same
//! everywhere. The file lists no versions, so that an update changes it only where a text changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::root;
use crate::license_expression::LicenseExpression;
use crate::package_graph::{Package, PackageGraph};

const FILE: &str = "THIRD-PARTY-LICENSES.txt";
/// The targets that releases are built for here.
const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-pc-windows-gnu",
];
/// The licences chosen first where a crate offers alternatives.
const PREFERRED: [&str; 2] = ["Apache-2.0", "MIT"];

/// The SPDX text of MIT below its copyright line, for a crate that ships none.
const MIT_TEXT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the \"Software\"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense,
and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

const HEADER: &str = "\
The program `adit` is built from its own crates, which are licensed under MIT or Apache-2.0, and with
the crates below, on all systems that it is released for. Where a crate offers a choice of licences,
this file has one. `cargo xtask licenses` writes it.
";

/// Writes the file. Returns the number of crates and texts.
pub(crate) fn write_texts() -> Result<String> {
    let collected = Collection::load()?;
    fs::write(root().join(FILE), collected.render()).context(FILE)?;
    Ok(collected.summary())
}

/// Checks that the file is up to date.
///
/// # Errors
///
/// The file is missing or differs.
pub(crate) fn check_texts() -> Result<String> {
    let collected = Collection::load()?;
    let there = fs::read_to_string(root().join(FILE)).unwrap_or_default();
    ensure!(
        there == collected.render(),
        "{FILE} differs from the licences of the crates; `cargo xtask licenses` writes it"
    );
    Ok(collected.summary())
}

/// Texts, each with the crates that it belongs to.
#[derive(Debug, Default)]
struct Collection {
    crates: BTreeSet<String>,
    /// By their words alone, since copies differ in line breaks: the text as it was found first,
    /// and the crates.
    texts: BTreeMap<String, (String, BTreeSet<String>)>,
}

impl Collection {
    fn load() -> Result<Self> {
        let graph = PackageGraph::load_for(&TARGETS)?;
        let mut collection = Self::default();
        for package in graph.release_packages("adit")? {
            if graph.rings.contains_key(&package.name) {
                continue;
            }
            let texts = package_texts(&package)
                .with_context(|| format!("{} {}", package.name, package.version))?;
            collection.add(&package.name, texts);
        }
        Ok(collection)
    }

    fn add(&mut self, krate: &str, texts: Vec<String>) {
        self.crates.insert(krate.to_owned());
        for text in texts {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, crates) = self.texts.entry(words).or_insert((text, BTreeSet::new()));
            crates.insert(krate.to_owned());
        }
    }

    /// Returns the whole file, the text of most crates first.
    fn render(&self) -> String {
        let mut texts: Vec<_> = self.texts.values().collect();
        texts.sort_by_key(|(text, crates)| (usize::MAX - crates.len(), crates, text));
        let mut out = HEADER.to_owned();
        for (text, crates) in texts {
            let names: Vec<&str> = crates.iter().map(String::as_str).collect();
            out.push_str(&format!("\n{}\n\n", "=".repeat(100)));
            out.push_str(&format!("Crates: {}", wrap_names(&names)));
            out.push('\n');
            for line in text.trim_matches('\n').lines() {
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        out
    }

    fn summary(&self) -> String {
        format!("{} crates, {} texts", self.crates.len(), self.texts.len())
    }
}

/// Returns lines of names, separated by commas.
fn wrap_names(names: &[&str]) -> String {
    let (mut out, mut width) = (String::new(), "Crates: ".len());
    for (n, name) in names.iter().enumerate() {
        if n > 0 {
            let full = width + name.len() > 97;
            out.push_str(if full { ",\n" } else { ", " });
            width = if full { 0 } else { width + 2 };
        }
        out.push_str(name);
        width += name.len();
    }
    out.push('\n');
    out
}

/// A file of a package that holds a licence or a notice.
#[derive(Debug)]
struct LicenseFile {
    /// The one licence that the file's name names; `None` for a file that always applies.
    license: Option<&'static str>,
    text: String,
}

/// Returns the texts that apply to a package.
fn package_texts(package: &Package) -> Result<Vec<String>> {
    select_texts(
        &package.name,
        &package.license,
        read_files(&package.folder)?,
    )
}

/// Returns the texts of the chosen licences, and those that apply in any case.
fn select_texts(krate: &str, license: &str, files: Vec<LicenseFile>) -> Result<Vec<String>> {
    let expression = LicenseExpression::parse(license)
        .with_context(|| format!("`{license}` is not an SPDX expression"))?;
    let general = files.iter().any(|file| file.license.is_none());
    let has_text = |name: &str| files.iter().any(|file| file.license == Some(name));
    let rank = |name: &str| {
        let preferred = PREFERRED.iter().position(|known| *known == name);
        let missing = !general && !has_text(name);
        (PREFERRED.len() + 1) * usize::from(missing) + preferred.unwrap_or(PREFERRED.len())
    };
    let chosen = expression.choose(&rank);
    let mut texts = Vec::new();
    if !general {
        for name in chosen.iter().filter(|name| !has_text(name)) {
            texts.push(standard_text(krate, name)?);
        }
    }
    let applies = |file: &LicenseFile| file.license.is_none_or(|name| chosen.contains(name));
    texts.extend(files.into_iter().filter(applies).map(|file| file.text));
    Ok(texts)
}

/// Returns the text of a licence for a crate that ships none.
fn standard_text(krate: &str, license: &str) -> Result<String> {
    match license {
        "Apache-2.0" => fs::read_to_string(root().join("LICENSE-APACHE")).context("LICENSE-APACHE"),
        "MIT" => Ok(format!(
            "MIT License\n\nCopyright (c) the authors of {krate}\n\n{MIT_TEXT}"
        )),
        _ => anyhow::bail!("it ships no text of {license}, and `cargo xtask` has none"),
    }
}

/// Reads the licences and notices in a package's folder, in the order of their names.
fn read_files(folder: &Path) -> Result<Vec<LicenseFile>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_file() && is_license_name(name) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        files.push(LicenseFile {
            license: named_license(name),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    Ok(files)
}

fn is_license_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let starts = [
        "LICENSE",
        "LICENCE",
        "UNLICENSE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
    ];
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns the licence that a file's name names. Other files, such as `LICENSE`, apply in any case.
fn named_license(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let name = name.trim_end_matches(".MD").trim_end_matches(".TXT");
    if name == "UNLICENSE" {
        return Some("Unlicense");
    }
    let kind = name
        .strip_prefix("LICENSE")
        .or_else(|| name.strip_prefix("LICENCE"))?;
    match kind.trim_start_matches(['-', '_', '.']) {
        "APACHE" | "APACHE-2.0" | "APACHE2" | "A2" => Some("Apache-2.0"),
        "A2LLVM" | "APACHE-2.0_WITH_LLVM-EXCEPTION" => Some("Apache-2.0 WITH LLVM-exception"),
        "MIT" => Some("MIT"),
        "MIT0" | "MIT-0" => Some("MIT-0"),
        "ISC" => Some("ISC"),
        "ZLIB" => Some("Zlib"),
        "0BSD" => Some("0BSD"),
        "CC0" => Some("CC0-1.0"),
        "UNICODE" => Some("Unicode-3.0"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Vec<LicenseFile> {
        let file = |name: &&str| LicenseFile {
            license: named_license(name),
            text: (*name).to_owned(),
        };
        names.iter().map(file).collect()
    }

    fn select(license: &str, names: &[&str]) -> Vec<String> {
        select_texts("x", license, files(names)).unwrap()
    }

    #[test]
    fn one_alternative_and_all_notices_are_selected() {
        let both = ["COPYRIGHT", "LICENSE-APACHE.md", "LICENSE-MIT"];
        assert_eq!(select("MIT OR Apache-2.0", &both), both[..2]);
        assert_eq!(select("MIT", &["LICENSE"]), ["LICENSE"]);
        assert_eq!(
            select("MIT OR Apache-2.0", &["LICENSE-MIT"]),
            ["LICENSE-MIT"]
        );
        assert_eq!(
            select("Apache-2.0 AND ISC", &["LICENSE-APACHE", "LICENSE-ISC"]),
            ["LICENSE-APACHE", "LICENSE-ISC"]
        );
        assert_eq!(
            select(
                "ISC AND (Apache-2.0 OR ISC)",
                &["LICENSE-other-bits", "LICENSE-ISC"]
            ),
            ["LICENSE-other-bits", "LICENSE-ISC"]
        );
    }

    #[test]
    fn a_crate_without_a_text_gets_the_standard_one() {
        let [mit] = &select("MIT", &[])[..] else {
            panic!("not one text")
        };
        assert!(mit.contains("the authors of x") && mit.contains("AS IS"));
        let apache = &select("MIT OR Apache-2.0", &[])[0];
        assert!(apache.contains("Version 2.0, January 2004"), "{apache}");
        assert!(select_texts("x", "Zlib", Vec::new()).is_err());
        assert!(select_texts("x", "", files(&["LICENSE"])).is_err());
    }

    #[test]
    fn equal_texts_are_listed_once_and_the_most_common_first() {
        let mut collection = Collection::default();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        collection.add("c", texts(&["rare"]));
        collection.add("b", texts(&["the\nsame  text\n"]));
        collection.add("a", texts(&["the same text"]));
        let line = "=".repeat(100);
        assert_eq!(
            collection.render(),
            format!(
                "{HEADER}\n{line}\n\nCrates: a, b\n\nthe\nsame  text\n\n{line}\n\nCrates: c\n\nrare\n"
            )
        );
        assert_eq!(collection.summary(), "3 crates, 2 texts");
    }

    #[test]
    fn long_lists_of_names_are_wrapped() {
        let name = "n".repeat(40);
        let lines = wrap_names(&[&name, &name, &name]);
        assert_eq!(lines, format!("{name}, {name},\n{name}\n"));
    }

    #[test]
    fn names_of_licences_are_told_from_others() {
        assert!(is_license_name("License.md") && is_license_name("NOTICES.md"));
        assert!(!is_license_name("README.md"));
        assert_eq!(named_license("LICENSE_A2"), Some("Apache-2.0"));
        assert_eq!(named_license("COPYING"), None);
    }
}
