//! The `adit` command: arguments → plan → engine.
//!
//! Data passes through like this: [`args`] says what may be typed, one module of [`command`] each
//! does it, [`report`] says what went wrong and with which exit code.

mod args;
mod command;
mod logging;
mod pick;
mod qr;
mod report;
mod state;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    logging::start(args.verbose);
    match command::dispatch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
