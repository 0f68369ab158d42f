//! The `adit` command: arguments → plan → engine.
//!
//! Data passes through like this: [`args`] says what may be typed, one module of [`command`] each
//! does it, [`report`] says what went wrong and with which exit code. Started as a SIP003 plugin,
//! without an argument, it is [`guest`] alone.

mod args;
mod command;
mod guest;
mod logging;
mod pick;
mod qr;
mod report;
#[cfg(unix)]
mod sftp_server;
mod state;

use std::process::ExitCode;

use adit_crypto::CpuLevel;
use clap::Parser;

use crate::args::Args;
use crate::report::{Code, Failure};

fn main() -> ExitCode {
    if let Some(invited) = guest::invitation() {
        logging::start(0);
        return guest::serve(invited).map_or_else(Failure::report, |()| ExitCode::SUCCESS);
    }
    let args = Args::parse_from(args::kcp::as_typed(std::env::args_os()));
    match log(&args)
        .and_then(|()| limit_cpu())
        .and_then(|()| command::dispatch(args))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Starts the log where it is wanted.
fn log(args: &Args) -> Result<(), Failure> {
    #[cfg(unix)]
    if let args::Command::Sshd(args::sshd::Sshd {
        log: Some(file), ..
    }) = &args.command
    {
        return logging::start_in(args.verbose, file).map_err(|why| {
            let what = format!("the log {}: {why}", file.display());
            Failure::new(Code::Failure, what)
        });
    }
    logging::start(args.verbose);
    Ok(())
}

/// `ADIT_CPU=portable|avx2|avx512` keeps newer instructions out, before any key is made.
fn limit_cpu() -> Result<(), Failure> {
    let Some(name) = std::env::var_os("ADIT_CPU") else {
        return Ok(());
    };
    match name.to_str().and_then(CpuLevel::from_name) {
        Some(level) => {
            adit_crypto::limit_cpu(level);
            Ok(())
        }
        None => {
            let all: Vec<&str> = CpuLevel::ALL.into_iter().map(CpuLevel::name).collect();
            let what = format!("ADIT_CPU is `{}`", name.display());
            Err(Failure::new(Code::Usage, what).hint(format!("it may be {}", all.join(", "))))
        }
    }
}
