//! Suite `ss-table`: every method in both directions over both transports, compared with the
//! implementations that have a similar set of methods.

use adit_interop::shadowsocks::{
    AES_128, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20, MethodKey,
};

use super::rounds::{BenchRun, RoundSpec};
use super::{Suite, transfer, udp};
use crate::load::in_flight::SendPace;
use crate::peers::InstalledPeer;
use crate::topology::Topology;

/// The 2022 edition with eight rounds, which few implementations support.
const BLAKE3_CHACHA8: MethodKey = MethodKey {
    name: "2022-blake3-chacha8-poly1305",
    key: BLAKE3_CHACHA20.key,
};

/// The rows.
pub(crate) const METHODS: [MethodKey; 7] = [
    BLAKE3_AES_128,
    BLAKE3_AES_256,
    BLAKE3_CHACHA20,
    BLAKE3_CHACHA8,
    AES_128,
    AES_256,
    CHACHA20,
];

/// The columns.
pub(crate) const COLUMNS: [&str; 4] = ["adit", "shadowsocks-rust", "shadowsocks-go", "sing-box"];

/// The text of a cell if an implementation does not support the method.
const NOT_OFFERED: &str = "not offered";

/// Measures one stream, then a flood of datagrams, for every method.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let among = |peer: &InstalledPeer| peer.is_one_of(&COLUMNS);
    let methods = if bench.settings.smoke {
        &METHODS[..1]
    } else {
        &METHODS
    };
    for method in methods {
        let topology = Topology::Tunnel(*method);
        let lacking = bench
            .peers
            .iter()
            .filter(|peer| among(peer) && !topology.is_supported_by(peer));
        for peer in lacking {
            let journal = &mut bench.journal;
            journal.record_skipped(Suite::SsTable, method.name, peer.name(), NOT_OFFERED);
        }
        let case = format!("{}, TCP", method.name);
        let contest = RoundSpec::new(Suite::SsTable, &case, topology)
            .among(&among)
            .without_syscalls();
        bench.run_rounds(&contest, |turn| transfer::measure_transfers(turn, 1, &case));
        let case = format!("{}, UDP", method.name);
        let contest = RoundSpec::new(Suite::SsTable, &case, topology)
            .among(&among)
            .without_syscalls();
        bench.run_rounds(&contest, |turn| {
            udp::measure_paces(turn, &case, &[(SendPace::Flood, "")])
        });
    }
}
