//! Charts of SSH and of connections: their number, memory and latency.

use super::chart_spec::{ChartSpec, row_bars, row_bars_and_no_relay};
use crate::figures::BetterWhen;
use crate::suite::Suite;

pub(super) const CHARTS: &[ChartSpec] = &[
    ChartSpec {
        suite: Suite::Ssh,
        name: "ssh",
        title: "CPU per GiB, a port forwarded over SSH (-L), download",
        detail: "client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "aes128-gcm@openssh.com",
                "aes128-gcm, -L, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "chacha20-poly1305@openssh.com",
                "chacha20-poly1305, -L, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "aes128-ctr with umac-64-etm@openssh.com",
                "aes128-ctr + umac-64-etm, -L, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "aes128-ctr with hmac-sha2-256-etm@openssh.com",
                "aes128-ctr + hmac-sha2-256-etm, -L, down",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Ssh,
        name: "ssh-program",
        title: "CPU per GiB, output of a program over SSH",
        detail: "client and server together",
        unit: "CPU seconds per GiB",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "aes128-gcm@openssh.com",
                "aes128-gcm, a program, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "chacha20-poly1305@openssh.com",
                "chacha20-poly1305, a program, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "aes128-ctr with umac-64-etm@openssh.com",
                "aes128-ctr + umac-64-etm, a program, down",
                "CPU s/GiB, both",
            ),
            row_bars(
                "aes128-ctr with hmac-sha2-256-etm@openssh.com",
                "aes128-ctr + hmac-sha2-256-etm, a program, down",
                "CPU s/GiB, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Ssh,
        name: "ssh-far",
        title: "Throughput of one SSH stream over a round trip of 100 ms",
        detail: "-L, aes128-gcm@openssh.com, a link of 1 Gbit/s",
        unit: "MB/s",
        better: BetterWhen::More,
        groups: &[
            row_bars_and_no_relay(
                "download",
                "aes128-gcm, -L, 1 Gbit/s, 100ms there and back, down",
                "MB/s",
            ),
            row_bars_and_no_relay(
                "upload",
                "aes128-gcm, -L, 1 Gbit/s, 100ms there and back, up",
                "MB/s",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Idle,
        name: "idle",
        title: "Memory of an idle connection, Shadowsocks 2022",
        detail: "2022-blake3-aes-128-gcm, client and server together",
        unit: "KiB per connection",
        better: BetterWhen::Less,
        groups: &[
            row_bars(
                "1,000 connections",
                "SOCKS5 client, 2022-blake3-aes-128-gcm, 1000 idle connections",
                "KiB/idle connection, both",
            ),
            row_bars(
                "50,000 connections",
                "SOCKS5 client, 2022-blake3-aes-128-gcm, 50000 idle connections, 7 processes",
                "KiB/idle connection, both",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Idle,
        name: "idle-socks",
        title: "Memory of an idle connection, SOCKS5 relay",
        detail: "1,000 connections through one process",
        unit: "KiB per connection",
        better: BetterWhen::Less,
        groups: &[row_bars(
            "1,000 connections",
            "SOCKS5 relay, 1000 idle connections",
            "KiB/idle connection",
        )],
    },
    ChartSpec {
        suite: Suite::Rate,
        name: "rate",
        title: "Short connections per second, Shadowsocks",
        detail: "eight at a time, one byte each way",
        unit: "connections per second",
        better: BetterWhen::More,
        groups: &[
            row_bars(
                "2022-blake3-aes-128-gcm",
                "tunnel, 2022-blake3-aes-128-gcm",
                "connections/s",
            ),
            row_bars(
                "chacha20-ietf-poly1305",
                "tunnel, chacha20-ietf-poly1305",
                "connections/s",
            ),
        ],
    },
    ChartSpec {
        suite: Suite::Rate,
        name: "rate-socks",
        title: "Short connections per second, SOCKS5 relay",
        detail: "eight at a time, one byte each way",
        unit: "connections per second",
        better: BetterWhen::More,
        groups: &[row_bars("one process", "SOCKS5 relay", "connections/s")],
    },
    ChartSpec {
        suite: Suite::Latency,
        name: "latency",
        title: "Latency beside four flows, Shadowsocks 2022",
        detail: "99 % of the echoes of nine bytes took no longer",
        unit: "ms",
        better: BetterWhen::Less,
        groups: &[row_bars_and_no_relay(
            "60 MB/s in each flow",
            "Shadowsocks, beside four paced flows",
            "p99 ms",
        )],
    },
    ChartSpec {
        suite: Suite::Latency,
        name: "latency-socks",
        title: "Latency beside four flows, SOCKS5 relay",
        detail: "99 % of the echoes of nine bytes took no longer",
        unit: "ms",
        better: BetterWhen::Less,
        groups: &[row_bars_and_no_relay(
            "60 MB/s in each flow",
            "SOCKS5, beside four paced flows",
            "p99 ms",
        )],
    },
    ChartSpec {
        suite: Suite::Latency,
        name: "latency-ssh",
        title: "Latency beside four flows, a port forwarded over SSH (-L)",
        detail: "99 % of the echoes of nine bytes took no longer",
        unit: "ms",
        better: BetterWhen::Less,
        groups: &[row_bars_and_no_relay(
            "60 MB/s in each flow",
            "SSH -L, beside four paced flows",
            "p99 ms",
        )],
    },
    ChartSpec {
        suite: Suite::Latency,
        name: "latency-kcp",
        title: "Latency beside four flows, kcptun tunnel",
        detail: "99 % of the echoes of nine bytes took no longer",
        unit: "ms",
        better: BetterWhen::Less,
        groups: &[row_bars_and_no_relay(
            "5 MB/s in each flow",
            "KCP, beside four paced flows",
            "p99 ms",
        )],
    },
    ChartSpec {
        suite: Suite::Workers,
        name: "workers",
        title: "Short connections per second by worker threads, Shadowsocks 2022",
        detail: "2022-blake3-aes-128-gcm, eight at a time",
        unit: "connections per second",
        better: BetterWhen::More,
        groups: &[row_bars(
            "client and server",
            "SOCKS5 client and server, 2022-blake3-aes-128-gcm, 8 connections",
            "connections/s",
        )],
    },
    ChartSpec {
        suite: Suite::Workers,
        name: "workers-socks",
        title: "Short connections per second by worker threads, SOCKS5 relay",
        detail: "eight at a time",
        unit: "connections per second",
        better: BetterWhen::More,
        groups: &[row_bars(
            "one process",
            "SOCKS5 relay, 8 connections",
            "connections/s",
        )],
    },
];
