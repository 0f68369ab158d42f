//! Checks of all packages, which are built from one release: with the tools of their systems, and by an installation
//! where such a system is at hand.

mod container;
mod debian;
mod installer;
mod linters;
mod manifests;
mod openwrt;
mod packages_under_test;
mod test_root;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::archives::{ReleaseArchives, SUMS, archive_name, folder_name};
use super::release::ReleaseInfo;
use super::source::PackageSource;
use super::{FORMATS, build_format};
use crate::command::{CommandRun, root, target_dir};
use crate::privilege::privileged;
use packages_under_test::BuiltPackages;
pub(crate) use test_root::install_debian_root;

/// Commands of the checks, each with the Debian package that provides it.
pub(crate) const PACKAGE_TOOLS: &[(&str, &str)] = &[
    ("bsdtar", "libarchive-tools"),
    ("buildah", "buildah"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("fakeroot", "fakeroot"),
    ("lintian", "lintian"),
    ("make", "make"),
    ("makepkg", "makepkg"),
    ("mmdebstrap", "mmdebstrap"),
    ("nix-instantiate", "nix-bin"),
    ("pacman", "pacman-package-manager"),
    ("rpmbuild", "rpm"),
    ("rpmlint", "rpmlint"),
    ("ruby", "ruby"),
    ("shellcheck", "shellcheck"),
];

/// Targets of archives that other packages name, and whose contents no check here can run: the archive of this
/// machine is used in their place.
const FOREIGN_TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-gnu",
];

/// Builds and checks all packages.
pub(crate) fn check_packages() -> Result<String> {
    let work = target_dir().join("package-check");
    if work.exists() {
        // Files of another user, if a former check was interrupted.
        privileged("rm", &["-rf", &work.to_string_lossy()])?.run_captured("package-rm")?;
    }
    let dist = work.join("dist");
    fs::create_dir_all(&dist)?;
    let release = ReleaseInfo::read()?;
    lay_out_release(&release, &dist)?;
    let key = installer::make_key(&work)?;
    installer::sign(&key, &dist.join(SUMS))?;
    let source = PackageSource {
        archives: ReleaseArchives::read(&dist, &release.version)?,
        release,
        release_key: Some(key.with_extension("pub")),
    };
    let program = source.archives.require_linux()?[0].program();
    let is_static = !super::debian::has_interpreter(&fs::read(program)?);
    let packages = BuiltPackages {
        source,
        dist,
        output: work.join("packages"),
        work: work.clone(),
    };
    let mut faults = Vec::new();
    let mut check = |name: &str, result: Result<()>| {
        if let Err(why) = result {
            faults.push(format!("{name}: {why:#}"));
        }
    };
    for format in FORMATS {
        if format.name == "container" && !is_static {
            continue;
        }
        let built = build_format(format, &packages.source, &packages.output);
        check(format.name, built.map(drop));
    }
    check("lintian", linters::check_debian(&packages));
    check("debian", debian::check(&packages));
    check("rpm", linters::check_rpm(&packages));
    check("arch", linters::check_arch(&packages));
    check("homebrew", manifests::check_homebrew(&packages));
    check("nix", manifests::check_nix(&packages));
    check("scoop", manifests::check_scoop(&packages));
    check("winget", manifests::check_winget(&packages));
    check("openwrt", openwrt::check(&packages));
    check("installer", installer::check(&packages));
    if is_static {
        check("container", container::check(&packages));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    privileged("rm", &["-rf", &work.to_string_lossy()])?.run_captured("package-rm")?;
    Ok(match is_static {
        true => format!("{} formats", FORMATS.len()),
        false => format!(
            "{} formats; container NOT checked: the program is not static (`cargo xtask dist` makes one)",
            FORMATS.len() - 1
        ),
    })
}

/// Writes the release under test: the contents of `target/dist` for this machine, or, without it, a folder with the
/// release binary; and an archive of it for every target that a package names.
fn lay_out_release(release: &ReleaseInfo, dist: &Path) -> Result<()> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let name = folder_name(&release.version, &target);
    let folder = dist.join(&name);
    let made = target_dir().join("dist").join(&name);
    if made.join("adit").is_file() {
        CommandRun::new("cp", ["-a"])
            .args([&made, &folder])
            .run_captured("package-dist")?;
    } else {
        lay_out_program(&target_dir().join("release/adit"), &folder)?;
    }
    let archive = archive_name(&release.version, &target);
    let tar = ["--sort=name", "--owner=0", "--group=0", "-czf", &archive];
    CommandRun::new("tar", tar)
        .args([&name])
        .in_folder(dist)
        .run_captured("package-tar")?;
    for other in FOREIGN_TARGETS.iter().filter(|other| **other != target) {
        fs::copy(
            dist.join(&archive),
            dist.join(archive_name(&release.version, other)),
        )?;
    }
    let sums = format!("sha256sum -- *.tar.gz *.zip > {SUMS}");
    CommandRun::new("sh", ["-euc", &sums])
        .in_folder(dist)
        .run_captured("package-sums")?;
    Ok(())
}

/// Writes what an archive contains, for a program that was built already.
fn lay_out_program(program: &Path, folder: &Path) -> Result<()> {
    ensure!(
        program.is_file(),
        "{}: no program; `cargo build --release` makes one",
        program.display()
    );
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    let copy = folder.join("adit");
    fs::copy(program, &copy)?;
    let run = |args: &[&str]| CommandRun::new(&copy, args).run_captured("package-program");
    run(&["man", "--dir", &folder.join("man").to_string_lossy()])?;
    for (shell, name) in [
        ("bash", "adit.bash"),
        ("zsh", "_adit"),
        ("fish", "adit.fish"),
    ] {
        fs::write(completions.join(name), run(&["completion", shell])?)?;
    }
    for name in [
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "THIRD-PARTY-LICENSES.txt",
    ] {
        fs::copy(root().join(name), folder.join(name)).with_context(|| name.to_owned())?;
    }
    Ok(())
}
