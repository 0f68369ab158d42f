//! The supply chain: licences, duplicate versions and the number of crates, according to
//! `deny.toml`.
//!
//! A small part of cargo-deny, with nothing to install; `test --all` runs cargo-deny itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::graph::{Graph, Package};
use crate::run::root;

/// Maximum number of crates in the release graph of `adit`.
const MOST_CRATES: usize = 200;

/// Checks the release graph of the binary.
pub(crate) fn check() -> Result<String> {
    let release = Graph::load()?.release_of("adit")?;
    let text = fs::read_to_string(root().join("deny.toml")).context("deny.toml")?;
    let rules = Rules::parse(&text)?;
    let faults = rules.faults(&release);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(format!("{} crates in the binary", release.len()))
}

#[derive(Debug)]
struct Rules {
    allowed: BTreeSet<String>,
    may_double: BTreeSet<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = toml::from_str(text)?;
        let list = |section: &str, key: &str| {
            let value = table.get(section).and_then(|s| s.get(key));
            let items = value
                .and_then(toml::Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            let name = |item: &toml::Value| {
                let named = item
                    .get("crate")
                    .or_else(|| item.get("name"))
                    .unwrap_or(item);
                named.as_str().map(str::to_owned)
            };
            items.iter().filter_map(name).collect::<BTreeSet<String>>()
        };
        let rules = Self {
            allowed: list("licenses", "allow"),
            may_double: list("bans", "skip"),
        };
        ensure!(
            !rules.allowed.is_empty(),
            "deny.toml: `licenses.allow` is empty"
        );
        Ok(rules)
    }

    fn faults(&self, release: &BTreeSet<Package>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in release {
            versions
                .entry(&package.name)
                .or_default()
                .push(&package.version);
            if !accepts(&package.license, &self.allowed) {
                faults.push(format!(
                    "{} {}: licence `{}` is not allowed in deny.toml",
                    package.name, package.version, package.license
                ));
            }
        }
        for (name, versions) in &versions {
            if versions.len() > 1 && !self.may_double.contains(*name) {
                faults.push(format!(
                    "{name} is built in {} versions ({}); exceptions belong in `bans.skip` of deny.toml",
                    versions.len(),
                    versions.join(", ")
                ));
            }
        }
        if release.len() > MOST_CRATES {
            faults.push(format!(
                "{} crates in the binary, more than {MOST_CRATES}",
                release.len()
            ));
        }
        faults
    }
}

/// Returns true if an SPDX expression can be satisfied with allowed licences alone.
///
/// `AND` binds tighter than `OR`; an old `/` means `OR`; `X WITH Y` is one term, which is allowed
/// as a whole or by `X`.
fn accepts(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        at: 0,
        allowed,
    };
    parser.any() == Some(true) && parser.at == words.len()
}

/// A parser of SPDX expressions; it returns `None` for a malformed one.
struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn eat(&mut self, word: &str) -> bool {
        let hit = self.words.get(self.at) == Some(&word);
        self.at += usize::from(hit);
        hit
    }

    fn any(&mut self) -> Option<bool> {
        let mut verdict = self.all()?;
        while self.eat("OR") {
            verdict |= self.all()?;
        }
        Some(verdict)
    }

    fn all(&mut self) -> Option<bool> {
        let mut verdict = self.term()?;
        while self.eat("AND") {
            verdict &= self.term()?;
        }
        Some(verdict)
    }

    fn term(&mut self) -> Option<bool> {
        if self.eat("(") {
            let verdict = self.any()?;
            return self.eat(")").then_some(verdict);
        }
        let licence = *self.words.get(self.at)?;
        self.at += 1;
        let mut verdict = self.allowed.contains(licence);
        if self.eat("WITH") {
            let exception = *self.words.get(self.at)?;
            self.at += 1;
            verdict |= self
                .allowed
                .contains(&format!("{licence} WITH {exception}"));
        }
        Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        let own = str::to_owned;
        Package {
            name: own(name),
            version: own(version),
            license: own(license),
        }
    }

    fn rules() -> Rules {
        let text = "[licenses]\nallow = ['MIT', 'ISC']\n[bans]\nskip = [{ crate = 'twice' }]";
        Rules::parse(text).unwrap()
    }

    #[test]
    fn licences_are_judged_as_expressions() {
        let allowed = ["MIT", "ISC", "Zlib"].map(str::to_owned).into();
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "MIT AND (GPL-3.0 OR ISC)",
            "ISC WITH X",
        ] {
            assert!(accepts(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT ISC",
            "AND",
        ] {
            assert!(!accepts(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn a_foreign_licence_is_a_fault() {
        let faults = rules().faults(&[package("a", "1.0.0", "GPL-3.0-only")].into());
        assert!(
            faults.len() == 1 && faults[0].contains("GPL-3.0-only"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_second_version_is_a_fault_unless_named() {
        let twice = |name| [package(name, "1.0.0", "MIT"), package(name, "2.0.0", "MIT")].into();
        assert!(rules().faults(&twice("twice")).is_empty());
        let faults = rules().faults(&twice("other"));
        assert!(
            faults.len() == 1 && faults[0].contains("1.0.0, 2.0.0"),
            "{faults:?}"
        );
    }

    #[test]
    fn too_many_crates_are_a_fault() {
        let many = (0..=MOST_CRATES)
            .map(|n| package(&format!("c{n}"), "1.0.0", "MIT"))
            .collect();
        assert_eq!(rules().faults(&many).len(), 1);
    }

    #[test]
    fn our_own_list_is_readable() {
        let text = fs::read_to_string(root().join("deny.toml")).unwrap();
        assert!(Rules::parse(&text).unwrap().allowed.contains("MIT"));
    }
}
