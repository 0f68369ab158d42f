//! `adit bench …`: what this machine can do, measured on the spot.

mod fec;
mod kcp;
mod mac;
mod packet;
mod rows;
mod ss;
mod ssh;

use adit_cli::Done;

use crate::args;

/// Does what was typed.
pub(super) fn bench(typed: &args::Bench) -> Done {
    match &typed.what {
        args::BenchWhat::Mac(mac) => mac::mac(mac),
        args::BenchWhat::Fec(span) => fec::fec(span),
        args::BenchWhat::Ss(span) => ss::ss(span),
        args::BenchWhat::Kcp(span) => kcp::kcp(span),
        args::BenchWhat::Ssh(ssh) => ssh::ssh(ssh),
    }
}
