//! The `adit` command: arguments → plan → engine.
//!
//! Data passes through like this: [`args`] says what may be typed, one module of [`command`] each
//! does it, [`adit_cli`] prints and says what went wrong and with which exit code. Started as a
//! SIP003 plugin, without an argument, it is [`guest`] alone.

#[macro_use(eprintln, print, println)]
extern crate adit_cli;

mod args;
mod command;
mod guest;
mod logging;
mod pick;
mod qr;
mod state;

use std::path::Path;
use std::process::ExitCode;

use adit_cli::{Code, Failure};
use adit_crypto::CpuLevel;
use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    if let Some(invited) = guest::invitation() {
        let serve = || guest::serve(invited);
        return log(0, false, None)
            .and_then(|()| serve())
            .map_or_else(Failure::report, |()| ExitCode::SUCCESS);
    }
    let args = Args::parse_from(args::kcp::as_typed(
        args::classic::by_name(std::env::args_os()).into_iter(),
    ));
    let (quiet, file) = args.command.log();
    let logged = log(args.verbose, quiet, file);
    match logged
        .and_then(|()| limit_cpu())
        .and_then(|()| command::dispatch(args))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn log(verbose: u8, quiet: bool, file: Option<&Path>) -> Result<(), Failure> {
    logging::start(verbose, quiet, file).map_err(|why| {
        let name = file.unwrap_or_else(|| Path::new("")).display();
        Failure::new(Code::Failure, format!("{name}: {why}"))
    })
}

/// `ADIT_CPU=portable|avx2|avx2-vaes|avx512` keeps newer instructions out, before any key or
/// code is made.
fn limit_cpu() -> Result<(), Failure> {
    let Some(name) = std::env::var_os("ADIT_CPU") else {
        return Ok(());
    };
    match name.to_str().and_then(CpuLevel::from_name) {
        Some(level) => {
            adit_crypto::limit_cpu(level);
            adit_fec::limit(kernels(level));
            Ok(())
        }
        None => {
            let all: Vec<&str> = CpuLevel::ALL.into_iter().map(CpuLevel::name).collect();
            let what = format!("ADIT_CPU is `{}`", name.display());
            Err(Failure::new(Code::Usage, what).hint(format!("it may be {}", all.join(", "))))
        }
    }
}

/// What the kernels of error correction may use at a level of the ciphers. Bit matrices (`GFNI`)
/// and `VAES` came together.
const fn kernels(level: CpuLevel) -> adit_fec::Level {
    match level {
        CpuLevel::Portable => adit_fec::Level::Portable,
        CpuLevel::Avx2 => adit_fec::Level::Avx2,
        CpuLevel::Avx2Vaes => adit_fec::Level::Avx2Gfni,
        _ => adit_fec::Level::Avx512Gfni,
    }
}
