//! Checks of all packages, which are built from one release: with the tools of their systems, and by an installation
//! where such a system is at hand.

mod container;
mod debian;
mod installer;
mod linters;
mod manifests;
mod openwrt;
mod test_root;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::archives::{ReleaseArchives, SUMS, archive_name, folder_name};
use super::release::ReleaseInfo;
use super::{FORMATS, PackageSource, build_format};
use crate::command::{CommandRun, find_program, root, target_dir};
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
const FOREIGN_TARGETS: [&str; 6] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "armv7-unknown-linux-musleabihf",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
];

/// The packages under test, and their place.
struct BuiltPackages {
    source: PackageSource,
    /// The folder of the archives.
    dist: PathBuf,
    /// The folder with one subfolder for each format.
    output: PathBuf,
    /// A folder for files of the checks.
    work: PathBuf,
}

impl BuiltPackages {
    /// Returns the folder of one format.
    fn folder(&self, format: &str) -> PathBuf {
        self.output.join(format)
    }

    /// Returns the program of the archives.
    fn program(&self) -> Result<PathBuf> {
        let unpacked = self.source.archives.require_linux()?;
        Ok(unpacked[0].program())
    }
}

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

/// Creates a command that needs the rights of root.
fn privileged(program: &str, args: &[&str]) -> Result<CommandRun> {
    let words = privileged_words(&[&[program], args].concat())?;
    let (program, args) = words.split_first().context("no program")?;
    Ok(CommandRun::new(program, args))
}

/// Returns the words of a command with the rights of root: as they are for root, and with sudo for other users.
fn privileged_words(words: &[&str]) -> Result<Vec<String>> {
    let id = CommandRun::new("id", ["-u"]).run_captured("id")?;
    let before: &[&str] = if id.trim() == "0" {
        &[]
    } else {
        &["sudo", "-n"]
    };
    ensure!(
        before.is_empty() || find_program("sudo").is_some(),
        "installing packages in a folder needs root, or sudo without a password"
    );
    Ok([before, words]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect())
}

/// Returns the path of a script beside this file.
fn script(name: &str) -> String {
    let path = root().join("dev/xtask/src/package/check").join(name);
    path.to_string_lossy().into_owned()
}

/// Runs shellcheck.
fn shellcheck(shell: &str, paths: &[PathBuf]) -> Result<()> {
    CommandRun::new("shellcheck", ["--shell", shell])
        .args(paths)
        .run_captured("shellcheck")?;
    Ok(())
}
