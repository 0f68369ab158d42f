//! `adit bench …`: benchmarks of this machine.

#[cfg(feature = "kcp")]
mod fec;
#[cfg(feature = "kcp")]
mod kcp;
mod mac;
#[cfg(feature = "kcp")]
mod packet;
mod proxy;
mod report;
mod rows;
mod ss;
#[cfg(feature = "ssh")]
mod ssh;

use adit_cli::CommandResult;

use crate::args;

/// Runs the benchmark of the arguments.
pub(super) fn run_bench(typed: &args::bench::BenchArgs) -> CommandResult {
    match &typed.what {
        args::bench::BenchCommand::Mac(mac) => mac::bench_mac(mac),
        #[cfg(feature = "kcp")]
        args::bench::BenchCommand::Fec(span) => fec::bench_fec(span),
        args::bench::BenchCommand::Ss(span) => ss::bench_ss(span),
        #[cfg(feature = "kcp")]
        args::bench::BenchCommand::Kcp(span) => kcp::bench_kcp(span),
        #[cfg(feature = "ssh")]
        args::bench::BenchCommand::Ssh(ssh) => ssh::bench_ssh(ssh),
        args::bench::BenchCommand::Proxy(proxy) => proxy::bench_proxy(proxy),
    }
}
