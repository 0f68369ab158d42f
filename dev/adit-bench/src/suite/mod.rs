//! The suites: what is measured, each in a file of its own.

mod crypto;
mod idle;
mod rate;
mod transfer;
mod turn;
mod udp;

use std::fmt;

use clap::ValueEnum;

use crate::figure::{CONNECTIONS, CPU_PER_GIB, PER_IDLE, Quantity, SEAL};

pub(crate) use turn::{Bench, NO_RELAY};

/// A set of measurements that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Shadowsocks over TCP, client and server
    SsTcp,
    /// SOCKS5 CONNECT through one process
    Socks,
    /// Shadowsocks over UDP, client and server
    SsUdp,
    /// Memory: freshly started, and for every idle connection
    Idle,
    /// Short connections: how many a second, and what each costs
    Rate,
    /// The ciphers of adit-crypto, in memory
    Crypto,
}

impl Suite {
    /// Every suite.
    pub(crate) const ALL: [Self; 6] = [
        Self::SsTcp,
        Self::Socks,
        Self::SsUdp,
        Self::Idle,
        Self::Rate,
        Self::Crypto,
    ];

    /// As it is typed, and in names of files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SsTcp => "ss-tcp",
            Self::Socks => "socks",
            Self::SsUdp => "ss-udp",
            Self::Idle => "idle",
            Self::Rate => "rate",
            Self::Crypto => "crypto",
        }
    }

    /// The heading of its report.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::SsTcp => "Shadowsocks over TCP",
            Self::Socks => "SOCKS5 relay",
            Self::SsUdp => "Shadowsocks over UDP",
            Self::Idle => "Memory",
            Self::Rate => "Short connections",
            Self::Crypto => "Ciphers",
        }
    }

    /// How it is measured, for the reader of the report.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::SsTcp => {
                "Client and server of the same implementation, a fixed forwarder in front; the \
                 payload crosses both once. CPU is user and system time of each process. System \
                 calls are counted in a shorter run of their own under `strace`, which slows the \
                 process down and so makes its reads larger: an order of magnitude, not more."
            }
            Self::Socks => {
                "One process relays SOCKS5 CONNECT to a bare TCP connection. CPU is its user and \
                 system time, its children included. System calls are counted in a shorter run of \
                 their own under `strace`: an order of magnitude, not more."
            }
            Self::SsUdp => {
                "Client and server of the same implementation; datagrams of 1,382 bytes in one \
                 flow, sent one by one. With 64 under way the sender waits for arrivals, so hardly \
                 anything is lost; in a flood it never waits. All per GiB and per second refers to \
                 what arrived."
            }
            Self::Idle => {
                "`VmRSS` of each process: freshly started, and how much more it is with the \
                 connections open, each used for one byte there and back, then left alone. The \
                 kernel's memory for sockets and pipes is not in it."
            }
            Self::Rate => {
                "Eight clients open one connection after the other, send one byte, wait for it to \
                 come back and close."
            }
            Self::Crypto => {
                "One thread, in memory, in place, time of the thread's own CPU clock. What is \
                 measured is the cipher as adit calls it, with a key that is expanded already; \
                 XChaCha derives a subkey for every message."
            }
        }
    }

    /// The quantity of its chart.
    pub(crate) const fn chart(self) -> Quantity {
        match self {
            Self::SsTcp | Self::Socks | Self::SsUdp => CPU_PER_GIB,
            Self::Idle => PER_IDLE,
            Self::Rate => CONNECTIONS,
            Self::Crypto => SEAL,
        }
    }

    /// Measures it.
    pub(crate) fn run(self, bench: &mut Bench) {
        match self {
            Self::SsTcp => transfer::shadowsocks(bench),
            Self::Socks => transfer::socks(bench),
            Self::SsUdp => udp::run(bench),
            Self::Idle => idle::run(bench),
            Self::Rate => rate::run(bench),
            Self::Crypto => crypto::run(bench),
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_typed_as_it_is_shown() {
        for suite in Suite::ALL {
            assert_eq!(Suite::from_str(suite.name(), false), Ok(suite));
        }
        assert_eq!(Suite::value_variants(), Suite::ALL);
    }
}
