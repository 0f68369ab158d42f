//! The conditions of a release.

use anyhow::{Context, Result, ensure};

use super::{ReleaseMode, ReleaseTree, test_mark};
use crate::public_api::semver::{self, Version};

/// The consequence of a failed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// A dry run fails too.
    Always,
    /// A dry run reports it, and goes on.
    Release,
}

/// A condition, which returns a note if the tree meets it.
pub(super) struct ReleaseCheck {
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    pub(super) run: fn(&ReleaseTree, &str) -> Result<String>,
}

const fn check(
    name: &'static str,
    severity: Severity,
    run: fn(&ReleaseTree, &str) -> Result<String>,
) -> ReleaseCheck {
    ReleaseCheck {
        name,
        severity,
        run,
    }
}

/// Returns the checks of a mode, in their order.
pub(super) fn of_mode(mode: ReleaseMode) -> Vec<ReleaseCheck> {
    use Severity::{Always, Release};
    match mode {
        ReleaseMode::DryRun | ReleaseMode::Real => vec![
            check("clean tree", Always, check_clean),
            check("version", Always, check_version),
            check("changelog", Always, check_changelog),
            check("api promise", Always, check_api_promise),
            check("repository address", Release, check_repository),
            check("tests passed", Release, check_tests),
        ],
        ReleaseMode::Tagged => vec![
            check("tag", Always, check_tag),
            check("released version", Always, check_released_version),
            check("repository address", Always, check_repository),
        ],
        ReleaseMode::Notes => Vec::new(),
    }
}

fn check_clean(tree: &ReleaseTree, _: &str) -> Result<String> {
    let status = tree.git(&["status", "--porcelain"])?;
    ensure!(status.is_empty(), "commit or remove these first:\n{status}");
    Ok(String::new())
}

/// The version is above that of the last release, and not below that of the tree.
fn check_version(tree: &ReleaseTree, version: &str) -> Result<String> {
    let manifest = tree.read("Cargo.toml")?;
    let (new, current) = (Version::parse(version)?, workspace_version(&manifest)?);
    ensure!(
        new >= Version::parse(&current)?,
        "{version} is below {current}, the version in Cargo.toml"
    );
    let tag = format!("v{version}");
    let tags = tree.git(&["tag", "--list", &tag])?;
    ensure!(tags.is_empty(), "the tag {tag} exists already");
    match semver::released_version(&manifest)? {
        Some(released) => {
            ensure!(
                new > released,
                "{version} is not above {released}, the last release"
            );
            Ok(format!("after {released}"))
        }
        None => Ok("the first release".to_owned()),
    }
}

fn check_changelog(tree: &ReleaseTree, version: &str) -> Result<String> {
    let changelog = tree.changelog()?;
    let (newest, date) = changelog.newest()?;
    ensure!(
        changelog.is_unreleased()?,
        "the newest section of CHANGELOG.md, {newest}, was released ({date}): write what is new since then \
         below `## {version} (unreleased)`"
    );
    ensure!(
        newest == version,
        "the newest section of CHANGELOG.md is that of {newest}, not {version}"
    );
    let lines = changelog.section(version)?;
    Ok(format!("{} entries", lines.matches("\n* ").count() + 1))
}

/// A compatible version removes no line of the snapshots of the last release. That the snapshots are
/// those of the code is a step of the tests.
fn check_api_promise(tree: &ReleaseTree, version: &str) -> Result<String> {
    let released = semver::released_version(&tree.read("Cargo.toml")?)?;
    let Some(released) = released else {
        return Ok("nothing is promised before the first release".to_owned());
    };
    if !Version::parse(version)?.is_compatible_with(released) {
        return Ok(format!("{version} may break what {released} promised"));
    }
    let tag = format!("v{released}");
    let diff = tree
        .git(&["diff", "--unified=0", &tag, "--", "api"])
        .with_context(|| format!("comparing with {tag}"))?;
    let is_removed =
        |line: &&str| line.starts_with('-') && !line.starts_with("---") && !line.starts_with("-# ");
    let removed: Vec<&str> = diff.lines().filter(is_removed).collect();
    ensure!(
        removed.is_empty(),
        "{version} is semver-compatible with {released}, and lacks of its API:\n{}",
        removed.join("\n")
    );
    Ok(format!("no line of {tag} is missing"))
}

/// The address is that of the sources: `.example` is reserved for documentation (RFC 2606).
fn check_repository(tree: &ReleaseTree, _: &str) -> Result<String> {
    let table: toml::Table = toml::from_str(&tree.read("Cargo.toml")?)?;
    let address = table
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("repository")?.as_str())
        .context("Cargo.toml: `workspace.package.repository` is missing")?;
    let host = address.split("://").nth(1).unwrap_or(address);
    let host = host.split('/').next().unwrap_or_default();
    ensure!(
        !host.ends_with(".example"),
        "Cargo.toml: `workspace.package.repository` is a placeholder: {address}"
    );
    Ok(address.to_owned())
}

fn check_tests(tree: &ReleaseTree, _: &str) -> Result<String> {
    let head = tree.git(&["rev-parse", "HEAD^{tree}"])?;
    ensure!(
        test_mark::passed_tree(&tree.target).as_deref() == Some(head.trim()),
        "`cargo xtask test` has not passed for this tree"
    );
    Ok(String::new())
}

fn check_tag(tree: &ReleaseTree, version: &str) -> Result<String> {
    let tags = tree.git(&["tag", "--points-at", "HEAD"])?;
    let tag = format!("v{version}");
    ensure!(
        tags.lines().any(|line| line == tag),
        "the current commit has no tag {tag}"
    );
    Ok(tag)
}

/// The files of the tagged tree have the version.
fn check_released_version(tree: &ReleaseTree, version: &str) -> Result<String> {
    let manifest = tree.read("Cargo.toml")?;
    let current = workspace_version(&manifest)?;
    ensure!(current == version, "the version in Cargo.toml is {current}");
    ensure!(
        semver::released_version(&manifest)? == Some(Version::parse(version)?),
        "`workspace.metadata.api.released` in Cargo.toml is not {version}"
    );
    let changelog = tree.changelog()?;
    let (newest, date) = changelog.newest()?;
    ensure!(
        newest == version && !changelog.is_unreleased()?,
        "the newest section of CHANGELOG.md is {newest} ({date})"
    );
    Ok(date.to_owned())
}

/// Returns the version of the workspace.
pub(super) fn workspace_version(manifest: &str) -> Result<String> {
    let table: toml::Table = toml::from_str(manifest)?;
    let version = table
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("version")?.as_str())
        .context("Cargo.toml: `workspace.package.version` is missing")?;
    Ok(version.to_owned())
}
