//! The tests of the crates with vector code for 64-bit ARM, in an emulator: once on a processor with
//! all instructions, and once on one that reports no cryptographic ones.
//!
//! The tests compare every kernel with its scalar twin byte for byte, and ciphers with published
//! values, so both runs together show that the choice changes no byte. qemu has no 64-bit ARM
//! without AES; programs learn of it by a word that the kernel passes at the start, and
//! [`gdb_stub`] changes that word.

mod gdb_stub;

use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, log_path};
use crate::dist::{CrossTools, DistTarget, Emulator, StandardLibrary};
use crate::test_command::{TestBinary, parse_binaries};
use crate::test_run::{self, PassedTests};

const TARGET: &str = "aarch64-unknown-linux-musl";
/// The crates with kernels of their own, or a choice between those of others.
const CRATES: [&str; 3] = ["adit-crypto", "adit-fec", "adit-umac"];

/// Builds and runs the tests.
pub(crate) fn run_emulated_tests() -> Result<String> {
    let target = DistTarget::find(TARGET)?;
    let tools = CrossTools::install()?;
    let library = StandardLibrary::install(TARGET)?;
    let emulator = Emulator::install(target)?;
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    let built = library
        .apply(tools.cargo_zigbuild("test")?)
        .args([
            "--no-run",
            "--locked",
            "--message-format=json",
            "--target",
            TARGET,
        ])
        .args(packages)
        .with_limit(20)
        .run_captured("emulated-build")?;
    let binaries: Vec<TestBinary> = parse_binaries(&built).collect();
    for name in CRATES {
        let found = binaries.iter().any(|binary| binary.package == name);
        ensure!(found, "no tests of {name}");
    }
    let mut notes = Vec::new();
    for has_crypto in [true, false] {
        let mut passed = PassedTests::default();
        for binary in &binaries {
            passed.merge(run_binary(
                binary,
                emulator.as_ref().map(Emulator::program),
                has_crypto,
            )?);
        }
        let label = if has_crypto { "with" } else { "without" };
        notes.push(format!("{passed} {label} AES and PMULL"));
    }
    Ok(notes.join(", "))
}

/// Runs the tests of one binary. A machine of this architecture has no emulator, and runs them once
/// as it is.
fn run_binary(
    binary: &TestBinary,
    emulator: Option<&Path>,
    has_crypto: bool,
) -> Result<PassedTests> {
    let log = format!("emulated-{}-{}-{has_crypto}", binary.package, binary.target);
    let run = |names: &[String]| {
        let command = match emulator {
            None => CommandRun::new(&binary.path, [""; 0]),
            Some(emulator) if has_crypto => {
                CommandRun::new(emulator, ["-cpu", "max"]).args([&binary.path])
            }
            Some(emulator) => {
                let socket = log_path(&log).with_extension("gdb");
                let _ = std::fs::remove_file(&socket);
                let command = CommandRun::new(emulator, ["-cpu", "cortex-a53", "-g"])
                    .args([&socket, &binary.path]);
                // If this fails, the emulator waits for it until the limit, and the log says why.
                thread::spawn(move || {
                    if let Err(why) = gdb_stub::hide_cryptographic_instructions(&socket) {
                        eprintln!("the debugger of the emulator: {why:#}");
                    }
                });
                command
            }
        };
        let exact = (!names.is_empty()).then_some("--exact");
        command
            .args(exact)
            .args(names)
            .in_folder(&binary.folder)
            .env("CARGO_MANIFEST_DIR", &binary.folder)
            .with_limit(10)
    };
    test_run::run_tests(&log, || run(&[]), |names| run(names)).context(log.clone())
}
