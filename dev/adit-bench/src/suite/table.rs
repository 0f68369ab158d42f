//! Suite `ss-table`: every method in both directions over both transports, compared with the
//! implementations that have a similar set of methods.

use adit_interop::shadowsocks::{
    AES_128, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20, Method,
};

use super::turn::{Bench, Contest};
use super::{Suite, transfer, udp};
use crate::load::flight::Pace;
use crate::peers::Peer;
use crate::topology::Topology;

/// The 2022 edition with eight rounds, which few implementations support.
const BLAKE3_CHACHA8: Method = Method {
    name: "2022-blake3-chacha8-poly1305",
    key: BLAKE3_CHACHA20.key,
};

/// The rows.
pub(crate) const METHODS: [Method; 7] = [
    BLAKE3_AES_128,
    BLAKE3_AES_256,
    BLAKE3_CHACHA20,
    BLAKE3_CHACHA8,
    AES_128,
    AES_256,
    CHACHA20,
];

/// The columns.
pub(crate) const WHO: [&str; 4] = ["adit", "shadowsocks-rust", "shadowsocks-go", "sing-box"];

/// The text of a cell if an implementation does not support the method.
const NOT_OFFERED: &str = "not offered";

/// Measures one stream, then a flood of datagrams, for every method.
pub(super) fn run(bench: &mut Bench) {
    let among = |peer: &Peer| WHO.contains(&peer.name());
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
            .filter(|peer| among(peer) && !topology.suits(peer));
        for peer in lacking {
            let journal = &mut bench.journal;
            journal.leave_out(Suite::SsTable, method.name, peer.name(), NOT_OFFERED);
        }
        let case = format!("{}, TCP", method.name);
        let contest = Contest::new(Suite::SsTable, &case, topology)
            .among(&among)
            .uncounted();
        bench.alternate(&contest, |turn| transfer::turns(turn, 1, &case));
        let case = format!("{}, UDP", method.name);
        let contest = Contest::new(Suite::SsTable, &case, topology)
            .among(&among)
            .uncounted();
        bench.alternate(&contest, |turn| {
            udp::turns(turn, &case, &[(Pace::Flood, "")])
        });
    }
}
