//! `release`: checks the tree, sets its version, and commits and tags it. Nothing is published: the workflow of
//! the tag builds the archives.

mod changelog;
mod checks;
mod test_mark;
#[cfg(test)]
mod tests;
mod version_change;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

pub(crate) use self::test_mark::record_passed_tests;

use self::changelog::Changelog;
use self::checks::Severity;
use self::version_change::VersionChange;
use crate::command::{CommandRun, root, target_dir};
use crate::public_api::semver::Version;
use crate::steps::StepRunner;

/// The mode of `release`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReleaseMode {
    /// Check, and change nothing. Reasons that only forbid a real release are warnings.
    DryRun,
    /// Check, set the version, commit and tag.
    Real,
    /// Check the tag of a release that has been made.
    Tagged,
    /// Print the section of the changelog.
    Notes,
}

/// The arguments of `release`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReleaseOptions {
    version: String,
    mode: ReleaseMode,
}

impl ReleaseOptions {
    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let (options, versions): (Vec<_>, Vec<_>) =
            args.iter().partition(|arg| arg.starts_with('-'));
        let [version] = versions.as_slice() else {
            bail!("`release` takes one version, such as 0.2.0");
        };
        let mode = match options.as_slice() {
            [] => ReleaseMode::Real,
            [one] => match one.as_str() {
                "--dry-run" => ReleaseMode::DryRun,
                "--tagged" => ReleaseMode::Tagged,
                "--notes" => ReleaseMode::Notes,
                other => bail!("`release` takes --dry-run, --tagged or --notes, not `{other}`"),
            },
            _ => bail!("`release` takes one of --dry-run, --tagged and --notes"),
        };
        let parsed = Version::parse(version)?;
        ensure!(
            parsed.to_string() == **version,
            "`{version}` is not a version MAJOR.MINOR.PATCH: a release has no suffix"
        );
        let version = (*version).clone();
        Ok(Self { version, mode })
    }
}

/// Runs `release`. Returns true if nothing forbids it.
pub(crate) fn run(options: &ReleaseOptions) -> Result<bool> {
    let tree = ReleaseTree {
        root: root(),
        target: target_dir(),
    };
    if options.mode == ReleaseMode::Notes {
        print!("{}", tree.changelog()?.section(&options.version)?);
        return Ok(true);
    }
    let mut steps = StepRunner::default();
    let passed = tree.release(&mut steps, options)?;
    steps.print_summary();
    Ok(passed)
}

/// The tree that is released.
#[derive(Debug)]
struct ReleaseTree {
    root: PathBuf,
    /// The folder with the mark of the tests.
    target: PathBuf,
}

impl ReleaseTree {
    fn release(&self, steps: &mut StepRunner, options: &ReleaseOptions) -> Result<bool> {
        let ReleaseOptions { version, mode } = options;
        let mut passed = true;
        for check in checks::of_mode(*mode) {
            passed &= steps.run_step(check.name, || match (check.run)(self, version) {
                Err(why) if *mode == ReleaseMode::DryRun && check.severity == Severity::Release => {
                    Ok(format!("would refuse a release: {why:#}"))
                }
                result => result,
            });
        }
        match mode {
            _ if !passed => return Ok(false),
            ReleaseMode::DryRun => passed &= steps.run_step("changes", || self.plan(version)),
            ReleaseMode::Real => passed &= steps.run_step("release", || self.commit(version)),
            ReleaseMode::Tagged | ReleaseMode::Notes => {}
        }
        Ok(passed)
    }

    /// Describes what [`Self::commit`] would do.
    fn plan(&self, version: &str) -> Result<String> {
        let change = self.version_change(version)?;
        let files = change.files.len();
        Ok(format!(
            "{} -> {version} in {files} files, commit, tag v{version}; nothing was changed",
            change.old
        ))
    }

    /// Writes the new version, commits and tags it.
    fn commit(&self, version: &str) -> Result<String> {
        for (path, text) in self.version_change(version)?.files {
            fs::write(self.root.join(&path), text).with_context(|| path.clone())?;
        }
        let message = format!("release: adit {version}");
        self.git(&["commit", "--quiet", "--all", "--message", &message])?;
        let tag = format!("v{version}");
        self.git(&["tag", "--annotate", "--message", &message, &tag])?;
        Ok(format!(
            "committed and tagged {tag}; `git push --follow-tags` starts the workflow that builds and signs it"
        ))
    }

    fn version_change(&self, version: &str) -> Result<VersionChange> {
        let paths = self.git(&["ls-files"])?;
        let today = CommandRun::new("date", ["-u", "+%F"]).run_captured("date")?;
        VersionChange::plan(&self.root, paths.lines(), version, today.trim())
    }

    fn changelog(&self) -> Result<Changelog> {
        Changelog::parse(&self.read("CHANGELOG.md")?)
    }

    fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| path.to_owned())
    }

    /// Runs git and returns its output.
    fn git(&self, args: &[&str]) -> Result<String> {
        run_git(&self.root, args)
    }
}

fn run_git(folder: &Path, args: &[&str]) -> Result<String> {
    let word = args.first().copied().unwrap_or_default();
    // Two tests must not write the same file.
    let log = format!("release-git-{word}-{:?}", std::thread::current().id());
    CommandRun::new("git", args)
        .in_folder(folder)
        .run_captured(&log.replace(['(', ')'], ""))
}
