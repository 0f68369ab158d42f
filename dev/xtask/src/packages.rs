//! Runs `cargo package` for every library and for adit itself, so that each can be published as it is in the tree.
//!
//! The packages are not compiled; their contents are compared with what they need: complete
//! manifests, dependencies with versions, and no file that refers to a path outside of its package.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, root};

/// Packages all libraries and adit, and checks their manifests and the paths in their sources.
pub(crate) fn check_packages() -> Result<String> {
    let folders = published_folders()?;
    let mut faults = Vec::new();
    for folder in &folders {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        faults.extend(manifest_faults(folder, &manifest));
        faults.extend(files_including_outside(folder)?);
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    let package = || {
        let names = folders.iter().map(|folder| package_name(folder));
        CommandRun::cargo(["package", "--no-verify", "--allow-dirty"])
            .args(names.flat_map(|name| ["--package".to_owned(), name]))
    };
    // Offline if the whole index is present; a new machine may lack a part of it.
    if package()
        .args(["--offline"])
        .run_captured("packages")
        .is_err()
    {
        package().run_captured("packages")?;
    }
    Ok(format!("{} packages", folders.len()))
}

/// Returns the folders of the packages that are published: all of `proto` and `io`, and the crates of `app`.
fn published_folders() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for ring in ["proto", "io", "app"] {
        for entry in fs::read_dir(root().join(ring)).context(ring)? {
            let folder = entry?.path();
            let is_program = ring == "app" && folder.join("src/main.rs").is_file();
            if is_program || folder.join("src/lib.rs").is_file() {
                found.push(folder);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn package_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the keys that a published manifest needs and this one lacks.
fn manifest_faults(folder: &Path, manifest: &str) -> Vec<String> {
    let is_app = folder.parent().is_some_and(|ring| ring.ends_with("app"));
    let needed: &[&str] = match is_app {
        true => &["description", "license", "repository"],
        false => &[
            "description",
            "license",
            "repository",
            "keywords",
            "categories",
            "documentation",
            "readme",
        ],
    };
    let missing = needed
        .iter()
        .filter(|key| !manifest.lines().any(|line| line.starts_with(**key)));
    missing
        .map(|key| format!("{}/Cargo.toml: missing key `{key}`", package_name(folder)))
        .collect()
}

/// Returns the files that include a file outside their package: such a package does not build.
fn files_including_outside(folder: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut folders = vec![
        folder.join("src"),
        folder.join("examples"),
        folder.join("benches"),
    ];
    while let Some(inside) = folders.pop() {
        let Ok(entries) = fs::read_dir(&inside) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path)?;
                let below = inside.strip_prefix(folder).unwrap_or(&inside);
                for include in
                    included_paths(&text).filter(|include| leaves_package(below, include))
                {
                    faults.push(format!(
                        "{}: {include} is outside its package",
                        path.display()
                    ));
                }
            }
        }
    }
    Ok(faults)
}

/// Returns the literal beginnings of the paths in `include_str!` and `include_bytes!`.
fn included_paths(text: &str) -> impl Iterator<Item = &str> {
    let calls = text.match_indices("include_").filter_map(|(at, _)| {
        let (before, call) = text.split_at_checked(at)?;
        // Guides whose examples the doctests compile are not read by a build of the package.
        let mut above = before.lines().rev().skip(1);
        if before.ends_with("#[doc = ")
            && above.by_ref().take(2).any(|line| line == "#[cfg(doctest)]")
        {
            return None;
        }
        ["include_str!(", "include_bytes!("]
            .iter()
            .find_map(|name| call.strip_prefix(name))
    });
    calls.filter_map(|call| {
        let call = call.strip_prefix("concat!(").unwrap_or(call).trim_start();
        Some(call.strip_prefix('"')?.split_once('"')?.0)
    })
}

/// Returns true if a path, relative to a folder of the package, leads out of it.
fn leaves_package(below: &Path, include: &str) -> bool {
    let mut depth = below.components().count();
    for part in Path::new(include).components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_a_package_are_found() {
        let text = "include_str!(\"../../x.json\"), include_bytes!(concat!(\"../y/\", $z))";
        assert_eq!(
            included_paths(text).collect::<Vec<_>>(),
            ["../../x.json", "../y/"]
        );
        let guide = "#[cfg(doctest)]\n#[doc = include_str!(\"../../../docs/x.md\")]\n";
        assert_eq!(included_paths(guide).count(), 0);
        assert!(leaves_package(Path::new("src"), "../../x.json"));
        assert!(!leaves_package(Path::new("src/a"), "../../x.json"));
        assert!(leaves_package(Path::new("src"), "../y/../../z"));
    }

    #[test]
    fn a_manifest_without_keywords_is_a_fault() {
        let folder = Path::new("proto/adit-x");
        let manifest = "[package]\ndescription = \"x\"\nlicense.workspace = true\n\
                        repository.workspace = true\n";
        assert_eq!(manifest_faults(folder, manifest).len(), 4);
        assert!(manifest_faults(Path::new("app/adit-x"), manifest).is_empty());
        let without = manifest.replace("repository", "homepage");
        assert_eq!(manifest_faults(Path::new("app/adit-x"), &without).len(), 1);
    }
}
