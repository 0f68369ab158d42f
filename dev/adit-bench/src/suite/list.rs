//! The list of suites: names, headings and methods.

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::figure::{CONNECTIONS, CPU_PER_GIB, MB, NS_PER_OP, P99, PER_IDLE, Quantity, SEAL};

/// A set of measurements that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Shadowsocks over TCP, client and server
    SsTcp,
    /// Shadowsocks over TCP through a relay (SIP023), beside nothing but `splice(2)`
    SsRelay,
    /// SOCKS5 CONNECT through one process
    Socks,
    /// Shadowsocks over UDP, client and server
    SsUdp,
    /// Every method, both ways, over TCP and UDP
    SsTable,
    /// ShadowsocksR over TCP: ciphers, protocols and obfs
    Ssr,
    /// SSH: programs, `-L` and `-D`, and the MACs in memory
    Ssh,
    /// Memory: freshly started, and for every idle connection
    Idle,
    /// KCP over a slow link that loses: throughput and the time of an echo
    Lossy,
    /// Short connections: how many a second, and what each costs
    Rate,
    /// Small requests alone, beside bulk, and beside other small ones: how long they take
    Latency,
    /// Connections and transfers on one worker thread and on two
    Workers,
    /// The ciphers of adit-crypto, in memory
    Crypto,
    /// Ciphers, checks and codes in memory, on each class of processors
    Cpu,
    /// Keys, headers and packets of Shadowsocks, in memory: time and allocations
    Headers,
    /// KCP: sessions and tunnels beside kcp-go's and kcptun's, idle ones, packets in memory
    Kcp,
    /// Forward error correction in memory, beside what kcp-go uses
    Fec,
    /// Handshakes of servers with many users, in memory, and the salts they keep
    Users,
}

impl Suite {
    /// Whether it measures processes, adit's and its rivals', and not code in this one.
    pub(crate) const fn has_peers(self) -> bool {
        !matches!(self, Self::Crypto | Self::Headers | Self::Users)
    }

    /// The heading of its report.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::SsTcp => "Shadowsocks over TCP",
            Self::SsRelay => "Shadowsocks relay",
            Self::Socks => "SOCKS5 relay",
            Self::SsUdp => "Shadowsocks over UDP",
            Self::SsTable => "Shadowsocks by method",
            Self::Ssr => "ShadowsocksR over TCP",
            Self::Ssh => "SSH",
            Self::Idle => "Memory",
            Self::Lossy => "KCP over a link that loses",
            Self::Rate => "Short connections",
            Self::Latency => "Latency under load",
            Self::Workers => "Workers",
            Self::Crypto => "Ciphers",
            Self::Cpu => "Classes of processors",
            Self::Kcp => "KCP",
            Self::Fec => "Forward error correction",
            Self::Headers => "Keys, headers and packets",
            Self::Users => "Many users",
        }
    }

    /// How it is measured, for the reader of the report.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::SsTcp => {
                "Client and server of the same implementation, a fixed forwarder in front; the \
                 payload crosses both once. CPU is user and system time of each process. System \
                 calls are counted in a transfer of their own. `busy` is beside a process for each \
                 core that only counts. `bare records` is no rival: two blocking threads a connection that read, seal or \
                 open, and write, without a protocol. That is what the copies and the cipher \
                 alone cost here."
            }
            Self::SsRelay => {
                "Client, relay and server of the same implementation; the relay takes an identity \
                 header off and passes the rest on. `bare splice` is a program of two threads a \
                 connection that does nothing but `splice(2)`, between adit's client and server: \
                 what the kernel alone costs in this place. CPU is user and system time of each \
                 process."
            }
            Self::Socks => {
                "One process relays SOCKS5 CONNECT to a bare TCP connection. CPU is its user and \
                 system time, its children included. System calls are counted in a transfer of \
                 their own. `busy` is beside a process for each core that only counts. `bare splice` is no \
                 rival: two blocking threads a connection that do nothing but `splice(2)` once the \
                 request is read. That is what the kernel alone costs here."
            }
            Self::SsUdp => {
                "Client and server of the same implementation; datagrams of 1,390 bytes up and \
                 1,382 bytes down in one flow, sent one by one. With 64 under way the sender waits \
                 for arrivals, so hardly anything is lost; at 200 Mbit/s of payload it waits for \
                 the clock; in a flood it never waits. All per GiB and per second refers to what \
                 arrived. `bare records` is no rival: two blocking threads that receive, seal or \
                 open, and send each datagram as it comes, without a protocol."
            }
            Self::SsTable => {
                "Client and server of the same implementation, one stream, or a flood of datagrams \
                 of 1,390 bytes up and 1,382 bytes down in one flow. CPU is that of both processes \
                 together. What is per second and per GiB refers to what arrived."
            }
            Self::Ssr => {
                "A SOCKS5 client and a server of the same implementation, one stream. CPU is user \
                 and system time of each process. The limits are what adit must not cost; those of \
                 an obfs are above the same stack without it. The plain Shadowsocks methods stand \
                 last, for comparison. Slow rivals carry fewer bytes; pproxy's ciphers are written \
                 in Python."
            }
            Self::Ssh => {
                "Client and server of the same implementation. A program: its input up, its output \
                 down (`head` at the server, which is counted with it), through the pipes of the \
                 client; with `-L` and `-D` one stream through a port of the client's. The far server \
                 is behind a link in user space between two network namespaces (`dev/adit-link`) \
                 that carries segments of TCP in groups, as network cards do, \
                 with buffers for TCP that do not hold it back; `no relay` is TCP alone, which \
                 tells what the link allows on this machine. CPU is user \
                 and system time of each process, its children included, behind the login. System \
                 calls are counted in a transfer of their own. The MACs are measured in memory by `adit bench mac`, those \
                 of OpenSSL by `openssl speed`."
            }
            Self::Idle => {
                "`VmRSS` of each process: freshly started, and how much more it is with the \
                 connections open, each used for one byte there and back, then left alone. The \
                 kernel's memory for sockets and pipes is not in it."
            }
            Self::Lossy => {
                "Two network namespaces with a link in user space between them \
                 (`dev/adit-link`): packets wait for the rate in a queue of 50 ms, then each is \
                 lost with this chance in either direction, then delayed. The origin and the \
                 tunnel's server are at the far end. One stream comes from the origin for ten \
                 seconds, of which the first two do not count, and every byte is compared; then \
                 64 bytes go there and back, one at a time. What the queue drops are packets \
                 that were sent faster than the link takes them. TCP is the kernel's, straight \
                 through the link."
            }
            Self::Rate => {
                "Eight clients open one connection after the other, send one byte, wait for it to \
                 come back and close."
            }
            Self::Latency => {
                "One connection sends nine bytes, waits until they come back, and begins again, \
                 through the same processes as what runs beside it: four flows of 60 MB/s each \
                 from the origin (5 MB/s over KCP), four that are as fast as they can be, or 200 \
                 clients that download 64 KiB, pause for 200 ms and begin again. MB/s is what came \
                 beside the echoes. Load and origin need the same processors as the processes do, and \
                 the threads that send and answer the echoes ask the kernel for short turns, \
                 so that their own wait is not the relay's; `no relay` tells what that alone makes of it. `bare splice` and `bare records` \
                 are no rivals: blocking threads without a protocol."
            }
            Self::Workers => {
                "Each process is told how many worker threads to use (`TOKIO_WORKER_THREADS`, or \
                 `GOMAXPROCS`). As many clients as there are connections open one after the other \
                 and send one byte there and back; then as many streams carry half of the bytes up \
                 and half of them down. The load needs the same processors as the processes do."
            }
            Self::Crypto => {
                "One thread, in memory, in place, time of the thread's own CPU clock. What is \
                 measured is the cipher as adit calls it, with a key that is expanded already; \
                 XChaCha derives a subkey for every message."
            }
            Self::Cpu => {
                "On one processor, which has the instructions of all these classes, with those of \
                 newer ones left alone (`ADIT_CPU`): plain Rust; AVX2; AVX2 with VAES, VPCLMULQDQ \
                 and GFNI on 256 bits; AVX-512. In memory and on one thread, the fastest round of \
                 each, for the kernels that adit chooses itself. AES-GCM comes from AWS-LC, which \
                 chooses for itself."
            }
            Self::Headers => {
                "One thread, in memory, time of the thread's own CPU clock, allocations of Rust's \
                 allocator (those of C libraries count in `cargo xtask bench --instructions`). A \
                 salt is drawn from the generator that adit draws from. Headers are \
                 single blocks, independent of each other. A packet is sealed by a client's \
                 session and opened by a server's table of sessions, in place; the bare cipher \
                 seals as many bytes of payload with a key that is expanded already."
            }
            Self::Kcp => {
                "Sessions: datagrams of 1,400 bytes, windows of 1,024 segments, fast3, both ends in \
                 one process of its own, whose user and system time counts; kcp-go by a small \
                 program around it. adit's allocations are those of a run on one thread. The \
                 tunnel is kcptun's, of two processes, compression off; kcp-go there stands for \
                 today's kcp-go, smux and snappy put together as kcptun has them. An idle session \
                 has said one byte and has had it back; its client is kcp-go for both servers, and \
                 memory is `VmRSS`. The rest is in memory and on one thread, the fastest round of \
                 each: `seal`, `open` and the checks as sessions do them, adit with sixteen datagrams \
                 at a time, `-one` with one alone, nonces by each one's own generator."
            }
            Self::Fec => {
                "In memory and on one thread, the fastest round of each. Everything is divided by \
                 the data shards of a group, so that it is what a datagram costs; `decode-3` \
                 restores three of a group. `code` is the arithmetic alone, with the matrices and \
                 calls that kcp-go makes of klauspost/reedsolomon; `stage` is adit's framing with \
                 it, which kcp-go does not show."
            }
            Self::Users => {
                "One thread, in memory, time of the thread's own CPU clock. A handshake is a \
                 request of 300 bytes read to its end and the head of the answer sealed; users \
                 come in no order; the fastest tenth of groups of eight. By trial a server tries \
                 the user last seen at the client's address first and all others after, which \
                 costs a key derivation and an AEAD key each, once for a connection."
            }
        }
    }

    /// Returns the quantity that matters most in it.
    pub(crate) const fn headline(self) -> Quantity {
        match self {
            Self::SsTcp
            | Self::SsRelay
            | Self::Socks
            | Self::SsUdp
            | Self::Ssh
            | Self::SsTable
            | Self::Ssr
            | Self::Kcp => CPU_PER_GIB,
            Self::Idle => PER_IDLE,
            Self::Latency => P99,
            Self::Lossy => MB,
            Self::Rate | Self::Workers => CONNECTIONS,
            Self::Crypto => SEAL,
            Self::Cpu | Self::Fec | Self::Headers | Self::Users => NS_PER_OP,
        }
    }
}

/// As it is typed, and in names of files.
impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = self.to_possible_value();
        f.write_str(typed.as_ref().map_or("", PossibleValue::get_name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_typed_as_it_is_shown() {
        for suite in Suite::value_variants() {
            assert_eq!(Suite::from_str(&suite.to_string(), false), Ok(*suite));
        }
        assert_eq!(Suite::SsTcp.to_string(), "ss-tcp");
    }
}
