//! The suites: what is measured, each in a file of its own.

mod classes;
mod crypto;
mod headers;
mod idle;
mod kcp;
mod latency;
mod list;
mod lossy;
mod rate;
mod ssh;
pub(crate) mod ssr;
mod steps;
pub(crate) mod table;
mod transfer;
mod turn;
mod udp;
mod users;
mod workers;
mod world;

pub(crate) use list::Suite;
pub(crate) use turn::{Bench, NO_RELAY};

/// Measures what a suite names.
pub(crate) fn run(suite: Suite, bench: &mut Bench) {
    match suite {
        Suite::SsTcp => transfer::shadowsocks(bench),
        Suite::SsRelay => transfer::relay(bench),
        Suite::Socks => transfer::socks(bench),
        Suite::SsUdp => udp::run(bench),
        Suite::SsTable => table::run(bench),
        Suite::Ssr => ssr::run(bench),
        Suite::Ssh => ssh::run(bench),
        Suite::Idle => idle::run(bench),
        Suite::Lossy => lossy::run(bench),
        Suite::Rate => rate::run(bench),
        Suite::Latency => latency::run(bench),
        Suite::Workers => workers::run(bench),
        Suite::Crypto => crypto::run(bench),
        Suite::Cpu => classes::run(bench),
        Suite::Kcp => kcp::run(bench),
        Suite::Fec => steps::run(bench, suite),
        Suite::Headers => headers::run(bench),
        Suite::Users => users::run(bench),
    }
}
