//! The commands of `adit`: from arguments to a plan to an engine.
//!
//! `args` defines the arguments, `command` has one module for each command, and [`adit_cli`] prints
//! output and errors and sets the exit code. Started as a SIP003 plugin, without an argument, the
//! program runs only `guest`.
//!
//! The commands are a separate crate because they are compiled for size. With thin LTO, the settings
//! of the program's own crate decide for all crates whether loops are vectorized, so the program
//! itself must be compiled for speed.

#[macro_use(eprintln, print, println)]
extern crate adit_cli;

mod args;
mod command;
mod fastest_method;
mod features;
mod hidden_input;
mod json;
mod logging;
mod plugin_mode;
mod profile;
mod qr_code;
mod stored_key;

use std::path::Path;
use std::process::ExitCode;

use adit_cli::{Failure, FailureCode};
use adit_config::LogFormat;
use adit_crypto::CpuLevel;
use clap::Parser as _;

use crate::args::Args;
use crate::logging::{LogOptions, ModuleFilter};

/// Runs the command that the arguments of the process name, and returns the exit code.
pub fn main() -> ExitCode {
    adit_net::memory::limit_free_memory();
    if let Some(invited) = plugin_mode::endpoint_from_env() {
        let serve = || plugin_mode::serve_endpoint(invited);
        return start_log(&LogOptions::default())
            .and_then(|()| serve())
            .map_or_else(Failure::print_and_exit_code, |()| ExitCode::SUCCESS);
    }
    let words = args::program_name::insert_command_by_name(std::env::args_os());
    if let Err(failure) = features::check_command(&words) {
        return failure.print_and_exit_code();
    }
    let words = args::route_options::insert_run(words);
    #[cfg(feature = "kcp")]
    let words = args::kcp::with_double_dashes(words.into_iter());
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(why) => match json::print_usage_error(&why, &words) {
            Some(code) => return code,
            None => why.exit(),
        },
    };
    let is_json = args.command.is_json();
    let logged = start_log(&LogOptions {
        verbose: args.verbose,
        ..args.command.log_options()
    });
    match logged
        .and_then(|()| limit_cpu())
        .and_then(|()| command::run_command(args))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if is_json => json::print_failure(&failure),
        Err(failure) => failure.print_and_exit_code(),
    }
}

/// Starts the log. The environment has what the arguments do not say: `ADIT_LOG` is `--log`, and `ADIT_LOG_FORMAT` is
/// `--log-format`. Commands whose options are those of other programs have no others, and plugins no arguments at all.
fn start_log(options: &LogOptions<'_>) -> Result<(), Failure> {
    let (modules, format) = log_of_environment()?;
    let options = &LogOptions {
        modules: match options.verbose {
            0 if !options.quiet => options.modules.or(modules.as_ref()),
            _ => options.modules,
        },
        format: options.format.or(format),
        ..*options
    };
    logging::start_log(options).map_err(|why| {
        let name = options.file.unwrap_or_else(|| Path::new("")).display();
        Failure::new(FailureCode::Failure, format!("{name}: {why}"))
    })
}

/// Returns the filter and the format of the log in the environment.
fn log_of_environment() -> Result<(Option<ModuleFilter>, Option<LogFormat>), Failure> {
    let read = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    };
    let wrong =
        |name: &str, why: String| Failure::new(FailureCode::Usage, format!("{why}, in {name}"));
    let filter = read("ADIT_LOG").map(|text| ModuleFilter::parse(&text));
    let filter = filter.transpose().map_err(|why| wrong("ADIT_LOG", why))?;
    let format = read("ADIT_LOG_FORMAT").map(|name| {
        let all: Vec<&str> = LogFormat::names().collect();
        LogFormat::from_name(&name).ok_or_else(|| {
            let why = format!("`{name}` is not a format; formats are {}", all.join(", "));
            wrong("ADIT_LOG_FORMAT", why)
        })
    });
    Ok((filter, format.transpose()?))
}

/// Limits the CPU instructions to those of `ADIT_CPU=portable|avx2|avx2-vaes|avx512`, before any key
/// or code is created.
fn limit_cpu() -> Result<(), Failure> {
    let Some(name) = std::env::var_os("ADIT_CPU") else {
        return Ok(());
    };
    match name.to_str().and_then(CpuLevel::from_name) {
        Some(level) => {
            adit_crypto::limit_cpu(level);
            #[cfg(feature = "kcp")]
            adit_fec::limit_level(fec_level(level));
            Ok(())
        }
        None => {
            let all: Vec<&str> = CpuLevel::ALL.into_iter().map(CpuLevel::name).collect();
            let what = format!("unknown level `{}` in ADIT_CPU", name.display());
            Err(Failure::new(FailureCode::Usage, what)
                .with_hint(format!("the levels are {}", all.join(", "))))
        }
    }
}

/// Returns the level of the error correction kernels for a level of the ciphers. CPUs with `VAES`
/// also have `GFNI`.
#[cfg(feature = "kcp")]
const fn fec_level(level: CpuLevel) -> adit_fec::FecLevel {
    match level {
        CpuLevel::Portable => adit_fec::FecLevel::Portable,
        CpuLevel::Avx2 => adit_fec::FecLevel::Avx2,
        CpuLevel::Avx2Vaes => adit_fec::FecLevel::Avx2Gfni,
        _ => adit_fec::FecLevel::Avx512Gfni,
    }
}
