//! The container image: the static program alone, built by buildah.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::archives::UnpackedTarget;
use super::debian::has_interpreter;
use super::source::PackageSource;
use super::staging::StagedTree;
use super::template;
use crate::command::{CommandRun, find_program};

/// User and group of the program, which own the folder of its socket and of its state.
pub(super) const USER: u32 = 65_532;

/// Builds an archive of the image for each static Linux program, which `podman load` and `docker load`
/// read.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    ensure!(
        find_program("buildah").is_some(),
        "cannot find `buildah` (Debian package buildah)"
    );
    let mut built = Vec::new();
    for unpacked in source.archives.require_linux()? {
        let Some(architecture) = architecture(unpacked.processor()) else {
            continue;
        };
        // Without a loader and libraries in the image, a dynamic program does not start.
        if has_interpreter(&fs::read(unpacked.program())?) {
            continue;
        }
        built.push(build_one(source, unpacked, architecture, output)?);
    }
    ensure!(
        !built.is_empty(),
        "no static program; `cargo xtask dist` makes one"
    );
    Ok(built.join(", "))
}

/// Returns the architecture and variant of an image, as Go names them.
fn architecture(processor: &str) -> Option<(&'static str, &'static str)> {
    match processor {
        "x86_64" => Some(("amd64", "")),
        "aarch64" => Some(("arm64", "v8")),
        _ => None,
    }
}

fn build_one(
    source: &PackageSource,
    unpacked: &UnpackedTarget,
    (architecture, variant): (&str, &str),
    output: &Path,
) -> Result<String> {
    let context = output.join("context");
    let tree = StagedTree::create(context.join("rootfs"))?;
    tree.copy(&unpacked.program(), "adit", 0o755)?;
    let config = template::example_config("restart the container")?;
    tree.write("etc/adit/adit.toml", &config, 0o644)?;
    let user = format!("adit:x:{USER}:{USER}::/var/lib/adit:/adit\n");
    tree.write("etc/passwd", &user, 0o644)?;
    tree.create_folder("tmp", 0o1777)?;
    // Of an archive, the image gets owners too; `COPY` would make everything root's.
    let tar = |mode: &str, owner: u32, names: &[&str]| {
        CommandRun::new(
            "tar",
            ["--sort=name", "--numeric-owner", mode, "../rootfs.tar"],
        )
        .args([format!("--owner={owner}"), format!("--group={owner}")])
        .args([format!("--mtime=@{}", source.release.time)])
        .args(names)
        .in_folder(&tree.root)
        .run_captured("rootfs")
    };
    tar("-cf", 0, &["adit", "etc", "tmp"])?;
    let own = ["run/adit", "var/lib/adit"];
    for folder in own {
        tree.create_folder(folder, 0o700)?;
    }
    tar("-rf", USER, &own)?;
    let containerfile = template::fill("container/Containerfile", &source.values())?;
    fs::write(context.join("Containerfile"), containerfile)?;

    let name = format!("localhost/adit:{}-{architecture}", source.release.version);
    let storage = Storage::below(output);
    // The format of Docker: that of OCI has no health check.
    storage
        .buildah(&["build", "--format=docker", "--isolation=chroot"])
        .args([format!("--timestamp={}", source.release.time)])
        .args(["--arch", architecture])
        .args((!variant.is_empty()).then(|| format!("--variant={variant}")))
        .args(["--tag", &name, "--file"])
        .args([context.join("Containerfile")])
        .args([&context])
        .run_captured("buildah")?;
    let file = format!("adit-{}-{architecture}.tar", source.release.version);
    let archive = format!("docker-archive:{}:{name}", output.join(&file).display());
    storage
        .buildah(&["push", "--quiet", &name, &archive])
        .run_captured("buildah-push")?;
    storage.remove()?;
    fs::remove_dir_all(&context)?;
    Ok(file)
}

/// The store of images of one build, apart from that of the user.
struct Storage {
    root: PathBuf,
}

impl Storage {
    /// Creates a store below a folder.
    fn below(folder: &Path) -> Self {
        Self {
            root: folder.join("storage"),
        }
    }

    /// Returns the options that choose this store.
    fn options(&self) -> Vec<String> {
        vec![
            format!("--root={}", self.root.join("root").display()),
            format!("--runroot={}", self.root.join("run").display()),
            "--storage-driver=vfs".to_owned(),
        ]
    }

    fn buildah(&self, args: &[&str]) -> CommandRun {
        CommandRun::new("buildah", self.options()).args(args)
    }

    /// Deletes the store.
    fn remove(&self) -> Result<()> {
        Ok(fs::remove_dir_all(&self.root)?)
    }
}
