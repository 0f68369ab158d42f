//! The checkers of distributions for their packages, and a build and an installation with pacman.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::packages_under_test::{BuiltPackages, script, shellcheck};
use crate::command::{CommandRun, root};
use crate::package::archives::archive_name;
use crate::package::staging::sorted_files;
use crate::privilege::privileged;

/// Checks of rpmlint that the package fails on purpose: it is static, and not of a distribution, which would sign it and
/// compress manuals as it does.
const RPMLINT_FILTERS: &str =
    "Filters = [\"no-signature\", \"manpage-not-compressed bz2\", \"statically-linked-binary\"]\n";

/// Runs lintian, and shellcheck on the scripts that dpkg runs.
pub(super) fn check_debian(packages: &BuiltPackages) -> Result<()> {
    let files = sorted_files(&packages.folder("deb"))?;
    ensure!(!files.is_empty(), "no package");
    CommandRun::new(
        "lintian",
        ["--allow-root", "--fail-on=error", "--tag-display-limit=0"],
    )
    .args(&files)
    .run_captured("lintian")?;
    let scripts = ["postinst", "prerm", "postrm"];
    let folder = root().join("packaging/debian");
    shellcheck("sh", &scripts.map(|name| folder.join(name)))?;
    let own = ["boot.sh", "debian.sh", "rpm.sh"];
    shellcheck("bash", &own.map(|name| PathBuf::from(script(name))))
}

/// Runs rpmlint.
pub(super) fn check_rpm(packages: &BuiltPackages) -> Result<()> {
    let config = packages.work.join("rpmlint.toml");
    fs::write(&config, RPMLINT_FILTERS)?;
    let files = sorted_files(&packages.folder("rpm"))?;
    ensure!(!files.is_empty(), "no package");
    CommandRun::new("rpmlint", ["--config"])
        .args([&config])
        .args(&files)
        .run_captured("rpmlint")?;
    Ok(())
}

/// Builds the package with makepkg, which checks the description, installs it in an empty folder with pacman, and
/// removes it.
pub(super) fn check_arch(packages: &BuiltPackages) -> Result<()> {
    let folder = packages.folder("arch");
    let version = &packages.source.release.version;
    // makepkg downloads no file that is there.
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let archive = archive_name(version, &target);
    fs::copy(packages.dist.join(&archive), folder.join(&archive))?;
    shellcheck("bash", &[folder.join("adit.install")])?;
    let path = folder.to_string_lossy();
    // makepkg refuses to run as root.
    privileged("chown", &["-R", "65534:65534", &path])?.run_captured("chown")?;
    let ids = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let home = format!("HOME={path}");
    let make = [
        "env",
        "-C",
        &*path,
        &*home,
        "PKGEXT=.pkg.tar.gz",
        "makepkg",
        "--nodeps",
    ];
    privileged("setpriv", &[&ids[..], &make[..]].concat())?.run_captured("makepkg")?;

    let built = sorted_files(&folder)?;
    let is_package = |path: &&PathBuf| path.to_string_lossy().ends_with(".pkg.tar.gz");
    let built = built
        .iter()
        .find(is_package)
        .context("makepkg made no package")?;
    let into = packages.work.join("arch-root");
    fs::create_dir_all(into.join("var/lib/pacman"))?;
    let into_text = into.to_string_lossy();
    let pacman = |words: &[&str]| {
        let options = ["--root", &*into_text, "--noconfirm", "--noscriptlet", "-dd"];
        privileged("pacman", &[&options[..], words].concat())?.run_captured("pacman")
    };
    pacman(&["-U", &built.to_string_lossy()])?;
    let program = CommandRun::new(into.join("usr/bin/adit"), ["--version"]);
    program.run_captured("pacman-program")?;
    for place in [
        "usr/lib/systemd/system/adit.service",
        "usr/share/man/man1/adit.1.gz",
        "etc/adit/adit.toml",
    ] {
        ensure!(into.join(place).is_file(), "the package has no `{place}`");
    }
    pacman(&["-R", "adit-bin"])?;
    for place in ["usr/bin/adit", "etc/adit/adit.toml", "usr/share/man/man1"] {
        ensure!(!into.join(place).exists(), "the package left `{place}`");
    }
    Ok(())
}
