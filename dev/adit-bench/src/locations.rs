//! Paths: the workspace, its build folder, the programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools;
use anyhow::{Context, Result, ensure};

/// Returns the folder of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.join("../..").canonicalize().unwrap_or(here)
}

/// Returns the folder of build products.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(
        || workspace_root().join("target"),
        |dir| workspace_root().join(dir),
    )
}

/// Returns the folder of the rivals that are built here.
pub(crate) fn peers_dir() -> PathBuf {
    workspace_root().join("target/peers")
}

/// Returns a command for the cargo that runs this program.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root());
    command
}

/// Searches for a program in `first`, in the `bin` folder there (where `cargo install --root` puts
/// it), and on the PATH with the folders of system services.
pub(crate) fn find_program(name: &str, first: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    [first.to_path_buf(), first.join("bin")]
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Builds `adit` as users get it, and returns its path.
pub(crate) fn build_adit() -> Result<PathBuf> {
    eprintln!("building adit");
    let args = ["build", "--quiet", "--release", "-p", "adit"];
    let status = cargo_command()
        .args(args)
        .status()
        .context("cannot start `cargo build`")?;
    ensure!(
        status.success(),
        "`adit` was not built: {status}; hint: name a binary with `--adit PATH`"
    );
    Ok(target_dir().join("release").join("adit"))
}

/// Returns the output of a short command; empty if it cannot be run or fails.
pub(crate) fn output_of(program: impl AsRef<Path>, args: &[&str]) -> String {
    let mut command = Command::new(program.as_ref());
    command.args(args).current_dir(workspace_root());
    let ended = external_tools::run_to_end(command, Duration::from_secs(10));
    ended
        .and_then(external_tools::ToolOutput::expect_success)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the version of an installed Debian package; empty if it is not installed.
pub(crate) fn debian_version(package: &str) -> String {
    output_of("dpkg-query", &["-W", "-f=${Version}", package])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(
            workspace_root()
                .join("proto/adit-wire/Cargo.toml")
                .is_file()
        );
    }

    #[test]
    fn the_named_folder_comes_before_the_path() {
        let folder = adit_interop::TempFolder::new("places").unwrap();
        assert_ne!(
            find_program("sh", folder.path()).unwrap(),
            folder.path().join("sh")
        );
        let own = folder.write_file("sh", "").unwrap();
        assert_eq!(find_program("sh", folder.path()).unwrap(), own);
        assert_eq!(find_program("no-such-program", folder.path()), None);
    }

    #[test]
    fn a_failing_command_says_nothing() {
        assert_eq!(output_of("echo", &["two", "words"]), "two words");
        assert_eq!(output_of("false", &[]), "");
        assert_eq!(output_of("no-such-program", &[]), "");
    }
}
