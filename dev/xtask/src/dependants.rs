//! Crates from the registry that need russh, built on adit-russh and run with OpenSSH's server.
//!
//! They are in a workspace of their own, `dev/russh-dependants`, where `[patch.crates-io]` puts the
//! packages of `compat` in the place of russh.

use std::fs;

use anyhow::{Result, ensure};

use crate::command::{CommandRun, root, target_dir};
use crate::test_run;

/// The folder of the workspace.
pub(crate) const FOLDER: &str = "dev/russh-dependants";
/// Minutes for the build and the tests, from nothing and on a busy machine.
const LIMIT: u64 = 10;

/// Builds and runs the tests of the dependants.
pub(crate) fn check_dependants() -> Result<String> {
    let folder = root().join(FOLDER);
    let lock = fs::read_to_string(folder.join("Cargo.lock"))?;
    let unpatched = unpatched(&lock);
    ensure!(
        unpatched.is_empty(),
        "{FOLDER}/Cargo.lock: no patch for russh {}",
        unpatched.join(", ")
    );
    let fetch = || {
        CommandRun::cargo(["fetch", "--locked"])
            .in_folder(&folder)
            .with_limit(5)
    };
    // Without the network if everything is here.
    let offline = fetch().args(["--offline"]).run_captured("fetch-dependants");
    if offline.is_err() {
        fetch().run_captured("fetch-dependants")?;
    }
    let test = || {
        CommandRun::cargo(["test", "--locked", "--offline"])
            .in_folder(&folder)
            .env("CARGO_TARGET_DIR", target_dir())
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .with_limit(LIMIT)
    };
    let alone = |names: &[String]| test().args(["--", "--exact"]).args(names);
    let passed = test_run::run_tests("dependants", test, alone)?;
    Ok(passed.to_string())
}

/// The versions of russh that are not patched: those from a registry.
fn unpatched(lock: &str) -> Vec<String> {
    let packages = lock.split("[[package]]").skip(1);
    let value = |package: &str, key: &str| {
        let mut lines = package.lines();
        lines.find_map(|line| {
            let value = line.strip_prefix(key)?.strip_prefix(" = ")?;
            Some(value.trim_matches('"').to_owned())
        })
    };
    packages
        .filter(|package| value(package, "name").as_deref() == Some("russh"))
        .filter(|package| value(package, "source").is_some())
        .filter_map(|package| value(package, "version"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_russh_from_the_registry_is_found() {
        let lock = "version = 4\n\n[[package]]\nname = \"russh\"\nversion = \"0.65.1\"\n\n\
            [[package]]\nname = \"russh\"\nversion = \"0.66.0\"\nsource = \"registry+x\"\n\n\
            [[package]]\nname = \"russh-sftp\"\nversion = \"3.0.1\"\nsource = \"registry+x\"\n";
        assert_eq!(unpatched(lock), ["0.66.0"]);
    }
}
