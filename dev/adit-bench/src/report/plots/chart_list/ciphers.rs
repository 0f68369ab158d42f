//! Charts of ciphers, keys and kernels, measured in memory.

use super::chart_spec::{ChartSpec, cell_bars, column_bars};
use crate::figures::BetterWhen;
use crate::suite::Suite;

pub(super) const CHARTS: &[ChartSpec] = &[
    ChartSpec {
        suite: Suite::Crypto,
        name: "crypto",
        title: "Speed of authenticated encryption",
        detail: "adit on one thread, in memory",
        unit: "GB/s",
        better: BetterWhen::More,
        groups: &[
            cell_bars(
                "messages of 1,400 B",
                "seal GB/s",
                &[
                    ("adit, AES-128-GCM", "messages of 1,400 B", "aes-128-gcm"),
                    ("adit, AES-256-GCM", "messages of 1,400 B", "aes-256-gcm"),
                    (
                        "adit, ChaCha20-Poly1305",
                        "messages of 1,400 B",
                        "chacha20-poly1305",
                    ),
                    (
                        "adit, XChaCha20-Poly1305",
                        "messages of 1,400 B",
                        "xchacha20-poly1305",
                    ),
                    (
                        "adit, ChaCha8-Poly1305",
                        "messages of 1,400 B",
                        "chacha8-poly1305",
                    ),
                ],
            ),
            cell_bars(
                "messages of 16 KiB",
                "seal GB/s",
                &[
                    ("adit, AES-128-GCM", "messages of 16 KiB", "aes-128-gcm"),
                    ("adit, AES-256-GCM", "messages of 16 KiB", "aes-256-gcm"),
                    (
                        "adit, ChaCha20-Poly1305",
                        "messages of 16 KiB",
                        "chacha20-poly1305",
                    ),
                    (
                        "adit, XChaCha20-Poly1305",
                        "messages of 16 KiB",
                        "xchacha20-poly1305",
                    ),
                    (
                        "adit, ChaCha8-Poly1305",
                        "messages of 16 KiB",
                        "chacha8-poly1305",
                    ),
                ],
            ),
            cell_bars(
                "messages of 64 KiB",
                "seal GB/s",
                &[
                    ("adit, AES-128-GCM", "messages of 64 KiB", "aes-128-gcm"),
                    ("adit, AES-256-GCM", "messages of 64 KiB", "aes-256-gcm"),
                    (
                        "adit, ChaCha20-Poly1305",
                        "messages of 64 KiB",
                        "chacha20-poly1305",
                    ),
                    (
                        "adit, XChaCha20-Poly1305",
                        "messages of 64 KiB",
                        "xchacha20-poly1305",
                    ),
                    (
                        "adit, ChaCha8-Poly1305",
                        "messages of 64 KiB",
                        "chacha8-poly1305",
                    ),
                ],
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Cpu,
        name: "cpu",
        title: "Time to seal a KCP datagram by instruction set",
        detail: "1,400 bytes, adit on one thread, in memory",
        unit: "ns per datagram",
        better: BetterWhen::Less,
        groups: &[
            column_bars("AES-256", "KCP, a datagram of 1,400 B", "seal-aes", "ns/op"),
            column_bars(
                "AES-128",
                "KCP, a datagram of 1,400 B",
                "seal-aes-128",
                "ns/op",
            ),
            column_bars(
                "Salsa20",
                "KCP, a datagram of 1,400 B",
                "seal-salsa20",
                "ns/op",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Cpu,
        name: "cpu-fec",
        title: "Time of error correction by instruction set",
        detail: "datagrams of 1,400 bytes, adit on one thread, in memory",
        unit: "ns per datagram",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "10 data and 3 parity shards, encode",
                "forward error correction, for each datagram of 1,400 B",
                "code-encode-vandermonde-10+3",
                "ns/op",
            ),
            column_bars(
                "10 data and 3 parity shards, restore three",
                "forward error correction, for each datagram of 1,400 B",
                "code-decode-3-vandermonde-10+3",
                "ns/op",
            ),
            column_bars(
                "20 data and 10 parity shards, encode",
                "forward error correction, for each datagram of 1,400 B",
                "code-encode-vandermonde-20+10",
                "ns/op",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Cpu,
        name: "cpu-ss",
        title: "Time to seal a Shadowsocks packet by instruction set",
        detail: "1,400 bytes, adit on one thread, in memory",
        unit: "ns per packet",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "2022-blake3-chacha20-poly1305",
                "Shadowsocks, 1,400 B",
                "packet-seal-2022-blake3-chacha20-poly1305",
                "ns/op",
            ),
            column_bars(
                "2022-blake3-chacha8-poly1305",
                "Shadowsocks, 1,400 B",
                "packet-seal-2022-blake3-chacha8-poly1305",
                "ns/op",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Headers,
        name: "headers",
        title: "Time to seal or open a Shadowsocks UDP packet",
        detail: "1,400 bytes, adit on one thread, in memory",
        unit: "ns per packet",
        better: BetterWhen::Less,
        groups: &[
            cell_bars(
                "seal",
                "ns/op",
                &[
                    (
                        "adit, 2022-blake3-aes-128-gcm",
                        "packets of 1,400 B",
                        "2022-blake3-aes-128-gcm, seal",
                    ),
                    (
                        "adit, 2022-blake3-aes-256-gcm",
                        "packets of 1,400 B",
                        "2022-blake3-aes-256-gcm, seal",
                    ),
                    (
                        "adit, 2022-blake3-chacha20-poly1305",
                        "packets of 1,400 B",
                        "2022-blake3-chacha20-poly1305, seal",
                    ),
                    (
                        "adit, aes-256-gcm",
                        "packets of 1,400 B",
                        "aes-256-gcm, seal",
                    ),
                    (
                        "adit, chacha20-ietf-poly1305",
                        "packets of 1,400 B",
                        "chacha20-ietf-poly1305, seal",
                    ),
                ],
            ),
            cell_bars(
                "open",
                "ns/op",
                &[
                    (
                        "adit, 2022-blake3-aes-128-gcm",
                        "packets of 1,400 B",
                        "2022-blake3-aes-128-gcm, open",
                    ),
                    (
                        "adit, 2022-blake3-aes-256-gcm",
                        "packets of 1,400 B",
                        "2022-blake3-aes-256-gcm, open",
                    ),
                    (
                        "adit, 2022-blake3-chacha20-poly1305",
                        "packets of 1,400 B",
                        "2022-blake3-chacha20-poly1305, open",
                    ),
                    (
                        "adit, aes-256-gcm",
                        "packets of 1,400 B",
                        "aes-256-gcm, open",
                    ),
                    (
                        "adit, chacha20-ietf-poly1305",
                        "packets of 1,400 B",
                        "chacha20-ietf-poly1305, open",
                    ),
                ],
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Users,
        name: "users",
        title: "Time of a Shadowsocks handshake by number of users",
        detail: "adit on one thread, in memory",
        unit: "ns per handshake",
        better: BetterWhen::Less,
        groups: &[
            cell_bars(
                "with identity headers",
                "ns/op",
                &[
                    (
                        "adit, 1 user",
                        "a handshake with identity headers",
                        "1 user",
                    ),
                    (
                        "adit, 10,000 users",
                        "a handshake with identity headers",
                        "10,000 users",
                    ),
                ],
            ),
            cell_bars(
                "AEAD edition, users found by trial",
                "ns/op",
                &[
                    (
                        "adit, 1 user",
                        "a handshake in the AEAD edition, users found by trial",
                        "1 user",
                    ),
                    (
                        "adit, 100 users, the address seen before",
                        "a handshake in the AEAD edition, users found by trial",
                        "100 users, the address seen before",
                    ),
                    (
                        "adit, 100 users, a new address",
                        "a handshake in the AEAD edition, users found by trial",
                        "100 users, a new address",
                    ),
                ],
            ),
        ],
    },
];
