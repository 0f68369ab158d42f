//! `adit bench …`: benchmarks of this machine.

mod fec;
mod kcp;
mod mac;
mod packet;
mod rows;
mod ss;
mod ssh;

use adit_cli::CommandResult;

use crate::args;

/// Runs the benchmark of the arguments.
pub(super) fn run_bench(typed: &args::BenchArgs) -> CommandResult {
    match &typed.what {
        args::BenchCommand::Mac(mac) => mac::bench_mac(mac),
        args::BenchCommand::Fec(span) => fec::bench_fec(span),
        args::BenchCommand::Ss(span) => ss::bench_ss(span),
        args::BenchCommand::Kcp(span) => kcp::bench_kcp(span),
        args::BenchCommand::Ssh(ssh) => ssh::bench_ssh(ssh),
    }
}
