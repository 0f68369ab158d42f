//! `adit bench …`: benchmarks of this machine.

mod fec;
mod kcp;
mod mac;
mod packet;
mod rows;
mod ss;
mod ssh;

use adit_cli::Done;

use crate::args;

/// Runs the benchmark of the arguments.
pub(super) fn bench(typed: &args::Bench) -> Done {
    match &typed.what {
        args::BenchWhat::Mac(mac) => mac::mac(mac),
        args::BenchWhat::Fec(span) => fec::fec(span),
        args::BenchWhat::Ss(span) => ss::ss(span),
        args::BenchWhat::Kcp(span) => kcp::kcp(span),
        args::BenchWhat::Ssh(ssh) => ssh::ssh(ssh),
    }
}
