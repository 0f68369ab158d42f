//! The supply chain: licences, duplicate versions and the number of crates, according to
//! `deny.toml`.
//!
//! A small part of cargo-deny, with nothing to install; `test --all` runs cargo-deny itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::root;
use crate::dist::DistTarget;
use crate::license_expression::LicenseExpression;
use crate::package_graph::{Package, PackageGraph, host_triple};

/// Maximum number of crates of others in the release graph of `adit`. The crates of the workspace are not a
/// supply, and dividing one of them must not look like a risk.
const MAX_FOREIGN_CRATES: usize = 246;

/// Checks the release graph of the binary.
pub(crate) fn check_supply_chain() -> Result<String> {
    // The host's own and the static binary, which has an allocator of its own.
    let targets = [&*host_triple()?, DistTarget::of_host()?.triple];
    let release = PackageGraph::load_for(&targets)?.release_packages("adit")?;
    let text = fs::read_to_string(root().join("deny.toml")).context("deny.toml")?;
    let rules = SupplyRules::parse(&text)?;
    let faults = rules.find_faults(&release);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    let foreign = foreign_crates(&release);
    Ok(format!(
        "{foreign} crates of others and {} of the workspace in the binary",
        release.len() - foreign
    ))
}

/// Returns the number of packages outside the workspace.
fn foreign_crates(release: &BTreeSet<Package>) -> usize {
    let own = root();
    let is_foreign = |package: &&Package| !package.folder.starts_with(&own);
    release.iter().filter(is_foreign).count()
}

#[derive(Debug)]
struct SupplyRules {
    allowed: BTreeSet<String>,
    allowed_duplicates: BTreeSet<String>,
}

impl SupplyRules {
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
            allowed_duplicates: list("bans", "skip"),
        };
        ensure!(
            !rules.allowed.is_empty(),
            "deny.toml: `licenses.allow` is empty"
        );
        Ok(rules)
    }

    fn find_faults(&self, release: &BTreeSet<Package>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in release {
            versions
                .entry(&package.name)
                .or_default()
                .push(&package.version);
            let license = LicenseExpression::parse(&package.license);
            if !license.is_some_and(|license| license.is_satisfied_by(&self.allowed)) {
                faults.push(format!(
                    "{} {}: licence `{}` is not allowed in deny.toml",
                    package.name, package.version, package.license
                ));
            }
        }
        for (name, versions) in &versions {
            if versions.len() > 1 && !self.allowed_duplicates.contains(*name) {
                faults.push(format!(
                    "{name} is built in {} versions ({}); exceptions belong in `bans.skip` of deny.toml",
                    versions.len(),
                    versions.join(", ")
                ));
            }
        }
        let foreign = foreign_crates(release);
        if foreign > MAX_FOREIGN_CRATES {
            faults.push(format!(
                "{foreign} crates of others in the binary, more than {MAX_FOREIGN_CRATES}"
            ));
        }
        faults
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
            folder: "/".into(),
        }
    }

    fn rules() -> SupplyRules {
        let text = "[licenses]\nallow = ['MIT', 'ISC']\n[bans]\nskip = [{ crate = 'twice' }]";
        SupplyRules::parse(text).unwrap()
    }

    #[test]
    fn a_foreign_licence_is_a_fault() {
        let faults = rules().find_faults(&[package("a", "1.0.0", "GPL-3.0-only")].into());
        assert!(
            faults.len() == 1 && faults[0].contains("GPL-3.0-only"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_second_version_is_a_fault_unless_named() {
        let twice = |name| [package(name, "1.0.0", "MIT"), package(name, "2.0.0", "MIT")].into();
        assert!(rules().find_faults(&twice("twice")).is_empty());
        let faults = rules().find_faults(&twice("other"));
        assert!(
            faults.len() == 1 && faults[0].contains("1.0.0, 2.0.0"),
            "{faults:?}"
        );
    }

    #[test]
    fn too_many_crates_are_a_fault() {
        let crates = |folder: &str| {
            let many = (0..=MAX_FOREIGN_CRATES).map(|n| Package {
                folder: folder.into(),
                ..package(&format!("c{n}"), "1.0.0", "MIT")
            });
            many.collect()
        };
        assert_eq!(rules().find_faults(&crates("/")).len(), 1);
        let own = root().join("io");
        assert_eq!(rules().find_faults(&crates(own.to_str().unwrap())), [""; 0]);
    }

    #[test]
    fn our_own_list_is_readable() {
        let text = fs::read_to_string(root().join("deny.toml")).unwrap();
        assert!(SupplyRules::parse(&text).unwrap().allowed.contains("MIT"));
    }
}
