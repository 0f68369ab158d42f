//! The package of Debian in a Debian root: installed, upgraded while its service runs, removed and purged. The package
//! of RPM is installed in the same root afterwards.

use std::fs;

use anyhow::{Context, Result};

use super::packages_under_test::{BuiltPackages, script};
use super::test_root::{BootedRoot, unpack_root};
use crate::command::CommandRun;
use crate::package::staging::sorted_files;
use crate::privilege::privileged;

/// Runs the checks in a root of their own.
pub(super) fn check(packages: &BuiltPackages) -> Result<()> {
    let root = unpack_root(&packages.work)?;
    let built = sorted_files(&packages.folder("deb"))?;
    let built = built.first().context("no package")?;
    let inside = root.join("packages");
    privileged("mkdir", &["-m", "777", &inside.to_string_lossy()])?.run_captured("mkdir")?;
    fs::copy(built, inside.join("adit-1.deb"))?;
    fs::copy(script("debian.sh"), inside.join("debian.sh"))?;

    // The same files as a later version.
    let unpacked = packages.work.join("deb-2");
    CommandRun::new("dpkg-deb", ["--raw-extract"])
        .args([built, &unpacked])
        .run_captured("dpkg-raw")?;
    let control = unpacked.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let version = format!("Version: {}-1", packages.source.release.version);
    let next = format!("Version: {}-2", packages.source.release.version);
    fs::write(&control, text.replace(&version, &next))?;
    CommandRun::new("dpkg-deb", ["--root-owner-group", "-Znone", "--build"])
        .args([&unpacked, &inside.join("adit-2.deb")])
        .run_captured("dpkg-2")?;

    let booted = BootedRoot::boot(&root)?;
    booted
        .command(&["bash", "/packages/debian.sh"])?
        .with_limit(5)
        .run_captured("package-debian")?;
    drop(booted);

    let rpm = sorted_files(&packages.folder("rpm"))?;
    let rpm = rpm.first().context("no package of RPM")?;
    let (root, rpm) = (root.to_string_lossy(), rpm.to_string_lossy());
    privileged("bash", &[&script("rpm.sh"), &root, &rpm])?.run_captured("package-rpm")?;
    Ok(())
}
