//! The workspace's packages and dependencies, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{CommandRun, root};

/// The kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// A dependency between two packages, as a manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) kind: DependencyKind,
}

/// A package in the dependency graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression; empty if the manifest has none.
    pub(crate) license: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
}

/// The output of `cargo metadata`.
#[derive(Debug)]
pub(crate) struct PackageGraph {
    /// Ring (`proto`, `io`, `app`, `dev`) of each workspace crate.
    pub(crate) rings: BTreeMap<String, String>,
    /// Dependencies that the manifests of workspace crates declare.
    pub(crate) dependencies: Vec<Dependency>,
    packages: BTreeMap<String, Package>,
    edges: BTreeMap<String, Vec<(String, DependencyKind)>>,
}

impl PackageGraph {
    /// Runs `cargo metadata` for this host.
    pub(crate) fn load() -> Result<Self> {
        Self::load_for(&[&host_triple()?])
    }

    /// Runs `cargo metadata` for these targets together.
    pub(crate) fn load_for(targets: &[&str]) -> Result<Self> {
        let text = CommandRun::cargo(["metadata", "--format-version=1"])
            .args(
                targets
                    .iter()
                    .flat_map(|target| ["--filter-platform", target]),
            )
            .env("CARGO_TERM_QUIET", "true")
            .run_captured("metadata")?;
        // The first run prints progress lines of downloads before the object.
        let json = text.lines().find(|line| line.starts_with('{'));
        Self::parse(json.context("cargo metadata printed no object")?)
    }

    fn parse(json: &str) -> Result<Self> {
        let all: Value = serde_json::from_str(json)?;
        let root = text_field(&all, "workspace_root");
        let members: BTreeSet<&str> = list_field(&all, "workspace_members")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut graph = Self {
            rings: BTreeMap::new(),
            dependencies: Vec::new(),
            packages: BTreeMap::new(),
            edges: BTreeMap::new(),
        };
        for package in list_field(&all, "packages") {
            let (id, name) = (text_field(package, "id"), text_field(package, "name"));
            graph.packages.insert(
                id.to_owned(),
                Package {
                    name: name.to_owned(),
                    version: text_field(package, "version").to_owned(),
                    license: text_field(package, "license").to_owned(),
                    folder: Path::new(text_field(package, "manifest_path"))
                        .parent()
                        .map_or_else(PathBuf::new, Path::to_path_buf),
                },
            );
            if !members.contains(id) {
                continue;
            }
            let manifest = text_field(package, "manifest_path");
            let inside = manifest
                .strip_prefix(root)
                .unwrap_or(manifest)
                .trim_start_matches('/');
            let ring = inside.split('/').next().unwrap_or_default();
            graph.rings.insert(name.to_owned(), ring.to_owned());
            for dependency in list_field(package, "dependencies") {
                graph.dependencies.push(Dependency {
                    from: name.to_owned(),
                    to: text_field(dependency, "name").to_owned(),
                    kind: dependency_kind(dependency),
                });
            }
        }
        for node in all
            .get("resolve")
            .map_or(&[][..], |resolve| list_field(resolve, "nodes"))
        {
            let mut edges = Vec::new();
            for dep in list_field(node, "deps") {
                let to = text_field(dep, "pkg");
                edges.extend(
                    list_field(dep, "dep_kinds")
                        .iter()
                        .map(|k| (to.to_owned(), dependency_kind(k))),
                );
            }
            graph.edges.insert(text_field(node, "id").to_owned(), edges);
        }
        Ok(graph)
    }

    /// Returns the names of the libraries in `proto` and `io`, sorted.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &str> {
        let rings = self.rings.iter();
        rings
            .filter(|(_, ring)| matches!(ring.as_str(), "proto" | "io"))
            .map(|(name, _)| name.as_str())
    }

    /// Returns the version of a package.
    pub(crate) fn version(&self, name: &str) -> Result<&str> {
        let mut packages = self.packages.values();
        packages
            .find(|package| package.name == name)
            .map(|package| package.version.as_str())
            .with_context(|| format!("cargo metadata lists no package `{name}`"))
    }

    /// Returns all packages that a release build of `name` compiles, including `name`.
    pub(crate) fn release_packages(&self, name: &str) -> Result<BTreeSet<Package>> {
        Ok(self.release_dependencies(name)?.into_keys().collect())
    }

    /// Returns all packages that a release build of `name` compiles, including `name`, each with the
    /// packages that it depends on.
    pub(crate) fn release_dependencies(
        &self,
        name: &str,
    ) -> Result<BTreeMap<Package, BTreeSet<Package>>> {
        let start = self
            .packages
            .iter()
            .find(|(_, package)| package.name == name);
        let (start, _) =
            start.with_context(|| format!("cargo metadata lists no package `{name}`"))?;
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::from([start.as_str()]);
        let mut open = vec![start.as_str()];
        while let Some(id) = open.pop() {
            let mut needed = BTreeSet::new();
            for (to, kind) in self.edges.get(id).map_or(&[][..], Vec::as_slice) {
                if *kind == DependencyKind::Dev {
                    continue;
                }
                needed.extend(self.packages.get(to).cloned());
                if seen.insert(to) {
                    open.push(to);
                }
            }
            if let Some(package) = self.packages.get(id) {
                found.insert(package.clone(), needed);
            }
        }
        Ok(found)
    }
}

/// Returns the target triple of this machine.
pub(crate) fn host_triple() -> Result<String> {
    let told = CommandRun::new("rustc", ["-vV"]).run_captured("rustc-version")?;
    let line = told.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .with_context(|| format!("no host in the output of rustc -vV in {}", root().display()))
}

fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list_field<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn dependency_kind(value: &Value) -> DependencyKind {
    match text_field(value, "kind") {
        "dev" => DependencyKind::Dev,
        "build" => DependencyKind::Build,
        _ => DependencyKind::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"workspace_root":"/w","workspace_members":["a"],
      "packages":[
        {"id":"a","name":"top","version":"1.0.0","license":"MIT","manifest_path":"/w/app/top/Cargo.toml",
         "dependencies":[{"name":"b","kind":null},{"name":"c","kind":"dev"}]},
        {"id":"b","name":"b","version":"0.1.0","license":"Zlib","manifest_path":"/r/b/Cargo.toml","dependencies":[]},
        {"id":"c","name":"c","version":"0.1.0","license":null,"manifest_path":"/r/c/Cargo.toml","dependencies":[]},
        {"id":"d","name":"d","version":"0.1.0","license":null,"manifest_path":"/r/d/Cargo.toml","dependencies":[]}],
      "resolve":{"nodes":[
        {"id":"a","deps":[{"pkg":"b","dep_kinds":[{"kind":null}]},{"pkg":"c","dep_kinds":[{"kind":"dev"}]}]},
        {"id":"b","deps":[{"pkg":"d","dep_kinds":[{"kind":"build"}]}]}]}}"#;

    #[test]
    fn reads_rings_and_arrows() {
        let graph = PackageGraph::parse(SAMPLE).unwrap();
        assert_eq!(graph.rings.get("top").map(String::as_str), Some("app"));
        assert_eq!(graph.dependencies.len(), 2);
        assert_eq!(graph.dependencies[1].kind, DependencyKind::Dev);
        assert_eq!(graph.version("top").unwrap(), "1.0.0");
        assert!(graph.version("none").is_err());
        assert_eq!(graph.libraries().count(), 0);
    }

    #[test]
    fn a_release_has_build_but_no_dev_dependencies() {
        let release = PackageGraph::parse(SAMPLE)
            .unwrap()
            .release_packages("top")
            .unwrap();
        let names: Vec<&str> = release.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["b", "d", "top"]);
    }
}
