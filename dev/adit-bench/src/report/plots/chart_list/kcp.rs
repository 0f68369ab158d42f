//! Charts of KCP and its error correction.

use super::chart_spec::{ChartSpec, cell_bars, column_bars, row_bars};
use crate::figures::BetterWhen;
use crate::suite::Suite;

pub(super) const CHARTS: &[ChartSpec] = &[
    ChartSpec {
        suite: Suite::Lossy,
        name: "lossy",
        title: "Throughput over a link that loses 5 % of all packets",
        detail: "100 Mbit/s, download, KCP beside plain TCP",
        unit: "MB/s",
        better: BetterWhen::More,
        groups: &[
            row_bars(
                "50 ms there and back",
                "100 Mbit/s, 50ms there and back, 5 % lost, down",
                "MB/s",
            ),
            row_bars(
                "100 ms there and back",
                "100 Mbit/s, 100ms there and back, 5 % lost, down",
                "MB/s",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Lossy,
        name: "lossy-echo",
        title: "Time of an echo over a link that loses 5 % of all packets",
        detail: "99 % of the echoes of 64 bytes took no longer, KCP beside plain TCP",
        unit: "ms",
        better: BetterWhen::Less,
        groups: &[row_bars(
            "50 ms there and back",
            "64 bytes there and back over 50ms, 5 % lost",
            "p99 ms",
        )],
    },
    ChartSpec {
        suite: Suite::Kcp,
        name: "kcp",
        title: "CPU per GiB, kcptun tunnel",
        detail: "fast3, AES-256, FEC 10+3, client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "download",
                "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "upload",
                "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream, up",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Kcp,
        name: "kcp-library",
        title: "CPU per GiB, KCP library, one way",
        detail: "FEC 10+3, both ends in one process",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            cell_bars(
                "AES-128, writes of 4 KiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "4 KiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "4 KiB, kcp-go",
                    ),
                ],
            ),
            cell_bars(
                "AES-128, writes of 64 KiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "64 KiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "64 KiB, kcp-go",
                    ),
                ],
            ),
            cell_bars(
                "AES-128, writes of 1 MiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "1 MiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, aes-128, FEC 10+3, by the size of writes",
                        "1 MiB, kcp-go",
                    ),
                ],
            ),
            cell_bars(
                "Salsa20, writes of 4 KiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "4 KiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "4 KiB, kcp-go",
                    ),
                ],
            ),
            cell_bars(
                "Salsa20, writes of 64 KiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "64 KiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "64 KiB, kcp-go",
                    ),
                ],
            ),
            cell_bars(
                "Salsa20, writes of 1 MiB",
                "CPU s/GiB",
                &[
                    (
                        "adit",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "1 MiB, adit",
                    ),
                    (
                        "kcp-go",
                        "one way, salsa20, FEC 10+3, by the size of writes",
                        "1 MiB, kcp-go",
                    ),
                ],
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Kcp,
        name: "kcp-idle",
        title: "Memory of an idle KCP session",
        detail: "5,000 sessions, AES-256, FEC 10+3",
        unit: "KiB per session",
        better: BetterWhen::Less,
        groups: &[row_bars(
            "the server",
            "a server with 5000 idle sessions, aes, FEC 10+3",
            "KiB/session",
        )],
    },
    ChartSpec {
        suite: Suite::Kcp,
        name: "kcp-seal",
        title: "Time to seal a KCP datagram",
        detail: "1,400 bytes, one thread, in memory; adit seals sixteen at a time",
        unit: "ns per datagram",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "AES-256",
                "sealing and opening a datagram of 1,400 B",
                "seal-aes",
                "ns/op",
            ),
            column_bars(
                "AES-128",
                "sealing and opening a datagram of 1,400 B",
                "seal-aes-128",
                "ns/op",
            ),
            column_bars(
                "AES-128-GCM",
                "sealing and opening a datagram of 1,400 B",
                "seal-aes-128-gcm",
                "ns/op",
            ),
            column_bars(
                "Salsa20",
                "sealing and opening a datagram of 1,400 B",
                "seal-salsa20",
                "ns/op",
            ),
            column_bars(
                "SM4",
                "sealing and opening a datagram of 1,400 B",
                "seal-sm4",
                "ns/op",
            ),
            column_bars(
                "Twofish",
                "sealing and opening a datagram of 1,400 B",
                "seal-twofish",
                "ns/op",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Fec,
        name: "fec",
        title: "Time to encode Reed–Solomon parity",
        detail: "datagrams of 1,400 bytes, one thread, in memory",
        unit: "ns per datagram",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "3 data and 1 parity shard",
                "the codes, for each datagram of 1,400 B",
                "code-encode-vandermonde-3+1",
                "ns/op",
            ),
            column_bars(
                "10 data and 3 parity shards",
                "the codes, for each datagram of 1,400 B",
                "code-encode-vandermonde-10+3",
                "ns/op",
            ),
            column_bars(
                "20 data and 10 parity shards",
                "the codes, for each datagram of 1,400 B",
                "code-encode-vandermonde-20+10",
                "ns/op",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Fec,
        name: "fec-restore",
        title: "Time to restore lost datagrams with Reed–Solomon codes",
        detail: "datagrams of 1,400 bytes, one thread, in memory",
        unit: "ns per datagram",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "3 data and 1 parity shard, one lost",
                "the codes, for each datagram of 1,400 B",
                "code-decode-1-vandermonde-3+1",
                "ns/op",
            ),
            column_bars(
                "10 data and 3 parity shards, one lost",
                "the codes, for each datagram of 1,400 B",
                "code-decode-1-vandermonde-10+3",
                "ns/op",
            ),
            column_bars(
                "10 data and 3 parity shards, three lost",
                "the codes, for each datagram of 1,400 B",
                "code-decode-3-vandermonde-10+3",
                "ns/op",
            ),
            column_bars(
                "20 data and 10 parity shards, three lost",
                "the codes, for each datagram of 1,400 B",
                "code-decode-3-vandermonde-20+10",
                "ns/op",
            ),
        ],
    },
];
