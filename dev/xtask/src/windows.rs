//! Windows, without a machine of it: adit is checked for it, and the tests of portable libraries run in wine.
//!
//! The compiler and the build folder are those of the checks with the oldest Rust: what runs at build time is compiled
//! once for both.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::command::{CommandRun, target_dir};
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
pub(crate) const TOOLS: [(&str, &str); 2] =
    [("wine", "wine"), (LINKER, "gcc-mingw-w64-x86-64-win32")];
/// The libraries whose tests run in wine. Not adit-net: wine 8 refuses options of its UDP sockets
/// (`IPV6_V6ONLY` of IPv4 sockets), so that a third of its tests fails there.
const TESTED: [&str; 9] = [
    "adit-dns",
    "adit-http",
    "adit-kcp-proto",
    "adit-rules",
    "adit-shadowsocks",
    "adit-smux-proto",
    "adit-socks",
    "adit-stream",
    "adit-wire",
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
fn check_adit() -> Result<String> {
    cargo("check")?
        .args(["--package", "adit"])
        .run_captured("windows-check")?;
    Ok(format!("adit for {TARGET}"))
}

/// Runs the tests of the portable libraries in wine.
fn run_tests() -> Result<String> {
    let folder = prepare_wine()?;
    let test = |run: CommandRun| {
        run.args(TESTED.iter().flat_map(|name| ["--package", name]))
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", WINE64)
            .envs(wine_settings(&folder))
    };
    let (all, again) = (cargo("test")?, cargo("test")?);
    let passed = test_run::run_tests(
        "windows-tests",
        || test(all).args(["--lib", "--no-fail-fast"]),
        |names| {
            let run = test(again).args(["--lib", "--no-fail-fast", "--", "--exact"]);
            run.args(names)
        },
    )?;
    Ok(format!("{passed} of {} libraries in wine", TESTED.len()))
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
