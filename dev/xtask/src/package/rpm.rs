//! Packages of Fedora, openSUSE and the systems that descend from Red Hat's.

use std::path::Path;

use anyhow::Result;

use super::archives::UnpackedTarget;
use super::source::PackageSource;
use super::staging::{Layout, StagedTree, add_documents};
use super::template;
use crate::command::CommandRun;

const LAYOUT: Layout = Layout {
    zsh: "usr/share/zsh/site-functions",
    fish: "usr/share/fish/vendor_completions.d",
};

/// Builds one package for each Linux target that has an RPM architecture.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    source.build_each(architecture, |unpacked, architecture| {
        build_one(source, unpacked, architecture, output)
    })
}

/// Returns the RPM name of a processor family.
fn architecture(processor: &str) -> Option<&'static str> {
    match processor {
        "x86_64" => Some("x86_64"),
        "aarch64" => Some("aarch64"),
        _ => None,
    }
}

fn build_one(
    source: &PackageSource,
    unpacked: &UnpackedTarget,
    architecture: &str,
    output: &Path,
) -> Result<String> {
    let tree = StagedTree::create(output.join("staged"))?;
    tree.add_all(unpacked, &LAYOUT)?;
    add_documents(
        &tree,
        unpacked,
        "usr/share/doc/adit",
        "usr/share/licenses/adit",
    )?;
    let mut values = source.values();
    values.set(
        "DATE_CHANGELOG",
        source.release.format_time("+%a %b %d %Y")?,
    );
    let spec = output.join("adit.spec");
    std::fs::write(&spec, template::fill("rpm/adit.spec", &values)?)?;
    let define = |name: &str, value: &Path| format!("{name} {}", value.display());
    CommandRun::new("rpmbuild", ["-bb", "--target", architecture])
        .args(["--define", &define("_topdir", &output.join("build"))])
        .args(["--define", &define("_staged", &tree.root)])
        .args(["--define", &define("_rpmdir", output)])
        .args([
            "--define",
            "_rpmfilename %{name}-%{version}-%{release}.%{arch}.rpm",
        ])
        .args([&spec])
        .env("SOURCE_DATE_EPOCH", source.release.time.to_string())
        .run_captured("rpmbuild")?;
    std::fs::remove_dir_all(&tree.root)?;
    std::fs::remove_dir_all(output.join("build"))?;
    std::fs::remove_file(&spec)?;
    Ok(format!(
        "adit-{}-1.{architecture}.rpm",
        source.release.version
    ))
}
