//! The suites: the measurements, each in a file of its own.

mod cpu_classes;
mod crypto;
mod dashboard_share;
pub(crate) mod fleet;
mod headers;
mod idle;
mod kcp;
mod latency;
mod linked_world;
mod lossy;
mod managed_process;
mod memory_steps;
pub(crate) mod method_table;
mod processors;
mod quotas;
mod rate;
mod rounds;
mod ssh;
pub(crate) mod ssr;
mod suite_list;
mod transfer;
mod turn_costs;
mod udp;
mod users;
mod watched;
mod workers;

pub(crate) use rounds::{BenchRun, NO_RELAY};
pub(crate) use suite_list::Suite;

/// Runs a suite.
pub(crate) fn run_suite(suite: Suite, bench: &mut BenchRun) {
    match suite {
        Suite::SsTcp => transfer::run_shadowsocks(bench),
        Suite::SsRelay => transfer::run_relay(bench),
        Suite::Socks => transfer::run_socks(bench),
        Suite::SsUdp => udp::run_suite(bench),
        Suite::SsTable => method_table::run_suite(bench),
        Suite::Ssr => ssr::run_suite(bench),
        Suite::Ssh => ssh::run_suite(bench),
        Suite::Idle => idle::run_suite(bench),
        Suite::Lossy => lossy::run_suite(bench),
        Suite::Rate => rate::run_suite(bench),
        Suite::Latency => latency::run_suite(bench),
        Suite::Workers => workers::run_suite(bench),
        Suite::Crypto => crypto::run_suite(bench),
        Suite::Cpu => cpu_classes::run_suite(bench),
        Suite::Kcp => kcp::run_suite(bench),
        Suite::Fec => memory_steps::run_suite(bench, suite),
        Suite::Headers => headers::run_suite(bench),
        Suite::Users => users::run_suite(bench),
        Suite::Fleet => fleet::run_suite(bench),
    }
}
