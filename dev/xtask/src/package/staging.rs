//! A tree of files as a package installs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::archives::UnpackedTarget;
use super::template;
use crate::command::{CommandRun, root};

/// Mode of a program, and of a file.
const PROGRAM: u32 = 0o755;
const FILE: u32 = 0o644;

/// The command that starts the service on a system with systemd.
pub(super) const SYSTEMD: &str = "systemctl enable --now adit";

/// Folders that differ between distributions, relative to the root.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) zsh: &'static str,
    pub(super) fish: &'static str,
}

/// A tree below a folder, which is the root of a package.
#[derive(Debug)]
pub(super) struct StagedTree {
    pub(super) root: PathBuf,
}

impl StagedTree {
    /// Creates an empty tree.
    pub(super) fn create(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        Ok(Self { root })
    }

    /// Copies the program, manual pages, completions, units, the example configuration and the
    /// user's definition.
    pub(super) fn add_all(&self, unpacked: &UnpackedTarget, layout: &Layout) -> Result<()> {
        self.copy(&unpacked.program(), "usr/bin/adit", PROGRAM)?;
        let pages = sorted_files(&unpacked.folder.join("man"))?;
        ensure!(!pages.is_empty(), "no manual pages");
        for page in pages {
            let name = file_name(&page);
            let (_, section) = name.rsplit_once('.').context("a page without a section")?;
            let place = format!("usr/share/man/man{section}/{name}");
            self.copy(&page, &place, FILE)?;
            self.compress(&place)?;
        }
        let completions = unpacked.folder.join("completions");
        for (name, place) in [
            (
                "adit.bash",
                "usr/share/bash-completion/completions/adit".to_owned(),
            ),
            ("_adit", format!("{}/_adit", layout.zsh)),
            ("adit.fish", format!("{}/adit.fish", layout.fish)),
        ] {
            self.copy(&completions.join(name), &place, FILE)?;
        }
        for unit in service_units()? {
            self.write(&format!("usr/lib/systemd/{}", unit.place), &unit.text, FILE)?;
        }
        self.write(
            "etc/adit/adit.toml",
            &template::example_config(SYSTEMD)?,
            FILE,
        )?;
        let user = template::read("sysusers.conf")?;
        self.write("usr/lib/sysusers.d/adit.conf", &user, FILE)
    }

    /// Copies a file to a place in the tree.
    pub(super) fn copy(&self, from: &Path, place: &str, mode: u32) -> Result<()> {
        let to = self.prepare(place)?;
        fs::copy(from, &to).with_context(|| from.display().to_string())?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Writes a file to a place in the tree.
    pub(super) fn write(&self, place: &str, text: &str, mode: u32) -> Result<()> {
        let to = self.prepare(place)?;
        fs::write(&to, text)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Creates a folder in the tree.
    pub(super) fn create_folder(&self, place: &str, mode: u32) -> Result<()> {
        let folder = self.root.join(place);
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Compresses a file in the tree, without its name and time.
    pub(super) fn compress(&self, place: &str) -> Result<()> {
        CommandRun::new("gzip", ["-9nf"])
            .args([self.root.join(place)])
            .run_captured("gzip")?;
        Ok(())
    }

    fn prepare(&self, place: &str) -> Result<PathBuf> {
        let to = self.root.join(place);
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(to)
    }
}

/// Adds the documents of a release to a tree: the changelog and the README to `documents`, the licences to
/// `licenses`.
pub(super) fn add_documents(
    tree: &StagedTree,
    unpacked: &UnpackedTarget,
    documents: &str,
    licenses: &str,
) -> Result<()> {
    let changelog = root().join("CHANGELOG.md");
    tree.copy(&changelog, &format!("{documents}/CHANGELOG.md"), FILE)?;
    for (place, name) in [
        (documents, "README.md"),
        (licenses, "LICENSE-APACHE"),
        (licenses, "LICENSE-MIT"),
        (licenses, "THIRD-PARTY-LICENSES.txt"),
    ] {
        tree.copy(
            &unpacked.folder.join(name),
            &format!("{place}/{name}"),
            FILE,
        )?;
    }
    Ok(())
}

/// A unit of systemd.
#[derive(Debug)]
pub(super) struct ServiceUnit {
    /// Its place below the folder of systemd: `system/…` or `user/…`.
    pub(super) place: String,
    pub(super) text: String,
}

/// Returns the units of `packaging/systemd`: those of the system, and of `user` those of users.
pub(super) fn service_units() -> Result<Vec<ServiceUnit>> {
    let mut units = Vec::new();
    for (folder, scope) in [("systemd", "system"), ("systemd/user", "user")] {
        let path = root().join("packaging").join(folder);
        if !path.is_dir() {
            continue;
        }
        for file in sorted_files(&path)? {
            let name = file_name(&file);
            if name.ends_with(".service") {
                let text = template::read(&format!("{folder}/{name}"))?;
                let place = format!("{scope}/{name}");
                units.push(ServiceUnit { place, text });
            }
        }
    }
    ensure!(!units.is_empty(), "packaging/systemd: no unit");
    Ok(units)
}

/// Returns the files of a folder, sorted, without those of its subfolders.
pub(super) fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        files.push(entry?.path());
    }
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Returns the last part of a path.
pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
