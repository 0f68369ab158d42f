//! Windows, without a machine of it: adit is checked for it, and the tests of portable libraries run in wine.
//!
//! The compiler and the build folder are those of the checks with the oldest Rust: what runs at build time is compiled
//! once for both.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::command::{CommandRun, log_path, target_dir};
use crate::install;
use crate::oldest_rust;
use crate::steps::StepRunner;
use crate::test_run;

/// The target. Debian has its linker.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// Wine for 64-bit programs: the command in the `PATH` looks for the 32-bit one too, and warns that it is missing.
pub(crate) const WINE64: &str = "/usr/lib/wine/wine64";
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The commands, each with the Debian package that provides it.
pub(crate) const TOOLS: [(&str, &str); 3] = [
    ("wine", "wine"),
    (LINKER, "gcc-mingw-w64-x86-64-win32"),
    // AWS-LC, in a build of libraries without rustls, which would select its own objects.
    ("nasm", "nasm"),
];
/// The libraries whose tests run in wine.
const TESTED: [&str; 10] = [
    "adit-dns",
    "adit-http",
    "adit-kcp-proto",
    "adit-net",
    "adit-rules",
    "adit-shadowsocks",
    "adit-smux-proto",
    "adit-socks",
    "adit-stream",
    "adit-wire",
];
/// The tests that cannot pass in wine 8, which lacks what they are about.
const NOT_IN_WINE: [&str; 2] = [
    // `FILE_FLAG_FIRST_PIPE_INSTANCE` has no effect: a second `CreateNamedPipeW` with it succeeds.
    "named_pipe::tests::a_name_is_taken_once",
    // An open file cannot be replaced: `FileRenameInfoEx` is error 87, and `MoveFileExW` is error 5.
    "persistent_file::line_file::tests::who_waits_finds_the_file_that_took_its_place",
];
/// A library that programs of Rust import and that wine lacks before version 9: its one function, under the name by which
/// wine has it.
const RANDOM_LIBRARY: &str = "\
LIBRARY bcryptprimitives.dll
EXPORTS
ProcessPrng = advapi32.SystemFunction036
";

/// Runs both steps.
pub(crate) fn run_steps(steps: &mut StepRunner) {
    steps.run_step("windows", check_adit);
    steps.run_step("windows, tests in wine", run_tests);
}

/// Checks adit for Windows. A warning is an error: code that is not used there is a mistake.
pub(crate) fn check_adit() -> Result<String> {
    cargo("check")?
        .args(["--package", "adit"])
        .run_captured("windows-check")?;
    Ok(format!("adit for {TARGET}"))
}

/// Runs the tests of the portable libraries in wine.
fn run_tests() -> Result<String> {
    const LOG: &str = "windows-tests";
    let folder = prepare_wine()?;
    // Wine turns access lists into modes of files. With the usual mask, all files belong to their owner alone, whatever
    // their access list allows.
    let runner = format!(
        r#"target.{TARGET}.runner=["sh", "-c", "umask 0; exec \"$0\" \"$@\"", "{WINE64}"]"#
    );
    let test = |run: CommandRun| {
        run.args(["--config", &runner])
            .args(TESTED.iter().flat_map(|name| ["--package", name]))
            .envs(wine_settings(&folder))
            .args(["--lib", "--no-fail-fast", "--"])
            .args(NOT_IN_WINE.iter().flat_map(|name| ["--skip", name]))
    };
    let (all, again) = (cargo("test")?, cargo("test")?);
    let passed = test_run::run_tests(
        LOG,
        || test(all),
        |names| test(again).args(["--exact"]).args(names),
    )?;
    let skipped = count_skipped(&fs::read_to_string(log_path(LOG))?);
    ensure!(
        skipped == NOT_IN_WINE.len(),
        "{skipped} tests were skipped, and {} are named: one has another name now",
        NOT_IN_WINE.len()
    );
    Ok(format!(
        "{passed} of {} libraries in wine, without {skipped} that wine 8 cannot pass",
        TESTED.len()
    ))
}

/// Returns the number of tests that the output of a run reports as filtered out.
fn count_skipped(output: &str) -> usize {
    let counts = output.lines().filter_map(|line| {
        let (before, _) = line
            .strip_prefix("test result: ")?
            .split_once(" filtered out")?;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    });
    counts.sum()
}

/// Returns a command of cargo for the target.
fn cargo(command: &str) -> Result<CommandRun> {
    let toolchain = oldest_rust::install()?;
    Ok(oldest_rust::cargo(&toolchain, command)
        .args(["--target", TARGET])
        .env("RUSTFLAGS", "-D warnings"))
}

/// Creates the folder of wine's settings and drives, with the library that wine lacks. Returns the folder.
pub(crate) fn prepare_wine() -> Result<PathBuf> {
    install::install_tools(&TOOLS)?;
    let folder = target_dir().join("wine");
    let system = folder.join("drive_c/windows/system32");
    let library = system.join("bcryptprimitives.dll");
    if library.is_file() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    CommandRun::new(WINE64, ["wineboot", "--init"])
        .envs(wine_settings(&folder))
        .run_captured("wineboot")?;
    ensure!(system.is_dir(), "wine has not created {}", system.display());
    let list = folder.join("bcryptprimitives.def");
    fs::write(&list, RANDOM_LIBRARY)?;
    // It forwards its function and has no code.
    CommandRun::new(LINKER, ["-shared", "-nostdlib", "-Wl,-e,0", "-o"])
        .args([&library, &list])
        .run_captured("wine-library")?;
    Ok(folder)
}

/// Returns the variables with which wine uses the folder of [`prepare_wine`], without its debug messages.
pub(crate) fn wine_settings(folder: &Path) -> [(&'static str, OsString); 2] {
    [("WINEPREFIX", folder.into()), ("WINEDEBUG", "-all".into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_counted() {
        let output = "test a ... ok\n\
            test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.1s\n\
            test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.1s\n";
        assert_eq!(count_skipped(output), 3);
    }
}
