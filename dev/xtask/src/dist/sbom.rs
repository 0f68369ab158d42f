//! The list of all crates in a binary, as CycloneDX in JSON: names, versions, licences, checksums and
//! dependencies.
//!
//! It has neither a serial number nor a time, so that the same sources make the same file.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command::root;
use crate::package_graph::{Package, PackageGraph};

/// The checksum of each package in `Cargo.lock`, by name and version.
type Checksums = BTreeMap<(String, String), String>;

/// Returns the list for a release build of adit. `compiler` is the first line of `rustc -V`.
pub(crate) fn bill_of_materials(target: &str, compiler: &str) -> Result<String> {
    let graph = PackageGraph::load_for(&[target])?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock")?;
    let all = render(&graph, &parse_checksums(&lock)?, target, compiler)?;
    Ok(format!("{all:#}\n"))
}

fn parse_checksums(lock: &str) -> Result<Checksums> {
    let lock: toml::Table = toml::from_str(lock).context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let field = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let sums = packages.context("Cargo.lock lists no package")?.iter();
    Ok(sums
        .filter_map(|package| {
            let key = (field(package, "name")?, field(package, "version")?);
            Some((key, field(package, "checksum")?))
        })
        .collect())
}

fn render(graph: &PackageGraph, sums: &Checksums, target: &str, compiler: &str) -> Result<Value> {
    let (mut main, mut components, mut dependencies) = (Value::Null, Vec::new(), Vec::new());
    for (package, needed) in graph.release_dependencies("adit")? {
        let needed: Vec<String> = needed.iter().map(reference).collect();
        dependencies.push(json!({ "ref": reference(&package), "dependsOn": needed }));
        let component = component(&package, sums);
        if package.name == "adit" {
            main = component;
        } else {
            components.push(component);
        }
    }
    main["type"] = json!("application");
    main["properties"] = json!([
        { "name": "adit:target", "value": target },
        { "name": "adit:compiler", "value": compiler },
    ]);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": main },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Package, sums: &Checksums) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
    });
    if !package.license.is_empty() {
        // Old manifests separate alternatives by a slash, which SPDX does not know.
        let expression = package.license.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(sum) = sums.get(&(package.name.clone(), package.version.clone())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// Returns the package URL of a crate.
fn reference(package: &Package) -> String {
    // Of the characters in versions, only the one before the build number is not allowed in a URL.
    let version = package.version.replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", package.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_its_licence_and_checksum() {
        let package = Package {
            name: "b".to_owned(),
            version: "0.1.0+c".to_owned(),
            license: "MIT/Apache-2.0".to_owned(),
            folder: "/".into(),
        };
        let lock = "[[package]]\nname = 'b'\nversion = '0.1.0+c'\nchecksum = 'abc'\n\
            [[package]]\nname = 'adit'\nversion = '1.0.0'\n";
        let sums = parse_checksums(lock).unwrap();
        assert_eq!(sums.len(), 1);
        let expected = json!({
            "type": "library",
            "bom-ref": "pkg:cargo/b@0.1.0%2Bc",
            "name": "b",
            "version": "0.1.0+c",
            "purl": "pkg:cargo/b@0.1.0%2Bc",
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            "hashes": [{ "alg": "SHA-256", "content": "abc" }],
        });
        assert_eq!(component(&package, &sums), expected);
    }

    #[test]
    fn every_crate_of_others_has_a_checksum_and_every_reference_a_component() {
        let text = bill_of_materials("x86_64-unknown-linux-musl", "rustc 1").unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["metadata"]["component"]["name"], "adit");
        let components = all["components"].as_array().unwrap();
        let mut known = vec![all["metadata"]["component"]["bom-ref"].clone()];
        for component in components {
            let name = component["name"].as_str().unwrap();
            let own = name.starts_with("adit-");
            assert_eq!(component["hashes"].is_null(), own, "{name}");
            assert!(component["licenses"][0]["expression"].is_string(), "{name}");
            known.push(component["bom-ref"].clone());
        }
        assert!(components.len() > 100, "{}", components.len());
        for entry in all["dependencies"].as_array().unwrap() {
            assert!(known.contains(&entry["ref"]));
            for needed in entry["dependsOn"].as_array().unwrap() {
                assert!(known.contains(needed), "{needed}");
            }
        }
    }
}
