//! The list of suites: names, headings and methods.

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::figures::{
    CONNECTIONS, CPU_PER_GIB, MB_PER_SECOND, MEMORY_PER_IDLE, NS_PER_OP, P99, Quantity, SEAL_RATE,
    STORE_CPU,
};

/// A set of measurements that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Shadowsocks over TCP, client and server
    SsTcp,
    /// Shadowsocks over TCP through a relay (SIP023), compared with bare `splice(2)`
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
    /// Memory: freshly started, and per idle connection
    Idle,
    /// KCP over a slow link with losses: throughput and latency of echoes
    Lossy,
    /// Short connections: number per second, and cost of each
    Rate,
    /// Latency of small requests alone, beside bulk transfers, and beside other small ones
    Latency,
    /// Connections and transfers on one worker thread and on two
    Workers,
    /// The ciphers of adit-crypto, in memory
    Crypto,
    /// Ciphers, checks and codes in memory, on each class of processors
    Cpu,
    /// Keys, headers and packets of Shadowsocks, in memory: time and allocations
    Headers,
    /// KCP: sessions and tunnels against kcp-go's and kcptun's, idle sessions, packets in memory
    Kcp,
    /// Forward error correction in memory, compared with the library that kcp-go uses
    Fec,
    /// Many users: handshakes and salts in memory, transfers with quotas, the dashboard beside sessions
    Users,
    /// A fleet: users, quotas and faults over many nodes and a store server, and what each costs
    Fleet,
}

impl Suite {
    /// Returns true if the suite measures processes, adit's and its rivals', and not code in this
    /// one.
    pub(crate) const fn has_peers(self) -> bool {
        !matches!(self, Self::Crypto | Self::Headers)
    }

    /// Returns the heading of its report.
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
            Self::Fleet => "A fleet",
        }
    }

    /// Returns the description of the method, for the reader of the report.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::SsTcp => {
                "Client and server are of the same implementation, with a fixed forwarder in \
                 front; the payload crosses both once. CPU is the user and system time of each \
                 process, and the peak of its memory is that of the transfer. System calls are \
                 counted in a separate transfer. `busy` means that \
                 one process per core does nothing but count. `bare records` is not a rival: \
                 two blocking threads per connection that read, seal or open, and write, \
                 without a protocol. It shows what the copies and the cipher alone cost here."
            }
            Self::SsRelay => {
                "Client, relay and server are of the same implementation; the relay removes an \
                 identity header and passes the rest on. `bare splice` is a program with two \
                 threads per connection that does nothing but `splice(2)`, between adit's \
                 client and server: it shows what the kernel alone costs in this place. CPU is \
                 the user and system time of each process."
            }
            Self::Socks => {
                "One process relays SOCKS5 CONNECT to a bare TCP connection. CPU is its user \
                 and system time, including its children, and the peak of its memory is that of \
                 the transfer. System calls are counted in a separate transfer. `busy` means that one process per core does nothing but \
                 count. `bare splice` is not a rival: two blocking threads per connection that \
                 do nothing but `splice(2)` after they have read the request. It shows what the \
                 kernel alone costs here."
            }
            Self::SsUdp => {
                "Client and server are of the same implementation; datagrams of 1,390 bytes up \
                 and 1,382 bytes down in one flow, sent one by one. With 64 under way, the \
                 sender waits for arrivals, so hardly anything is lost; at 200 Mbit/s of \
                 payload, it waits for the clock; in a flood, it never waits. Figures per GiB \
                 and per second refer to the data that arrived. `bare records` is not a rival: \
                 two blocking threads that receive, seal or open, and send each datagram as it \
                 arrives, without a protocol."
            }
            Self::SsTable => {
                "Client and server are of the same implementation, with one stream, or a flood \
                 of datagrams of 1,390 bytes up and 1,382 bytes down in one flow. CPU is that \
                 of both processes together. Figures per second and per GiB refer to the data \
                 that arrived."
            }
            Self::Ssr => {
                "A SOCKS5 client and a server of the same implementation, with one stream. CPU \
                 is the user and system time of each process. The limits are what adit may cost \
                 at most; those of an obfs are relative to the same stack without it. The plain \
                 Shadowsocks methods are the last rows, for comparison. Slow rivals transfer \
                 fewer bytes; pproxy's ciphers are written in Python."
            }
            Self::Ssh => {
                "Client and server are of the same implementation. A program receives its input \
                 up and sends its output down (`head` at the server, which is included) through \
                 the pipes of the client; with `-L` and `-D`, one stream passes through a port \
                 of the client. The far server is behind a user-space link between two network \
                 namespaces (`dev/adit-link`) that carries TCP segments in groups, as network \
                 cards do, with TCP buffers that do not limit it; `no relay` is TCP alone, \
                 which shows what the link allows on this machine. CPU is the user and system \
                 time of each process, including its children, after the login. System calls \
                 are counted in a separate transfer. The MACs are measured in memory by `adit \
                 bench mac`, those of OpenSSL by `openssl speed`."
            }
            Self::Idle => {
                "`VmRSS` of each process: freshly started, and its growth from 200 open connections \
                 to the number in the title, each of which has transferred one byte in both \
                 directions and is then idle. The kernel's memory for sockets and pipes is not \
                 included."
            }
            Self::Lossy => {
                "Two network namespaces with a user-space link between them (`dev/adit-link`): \
                 packets wait for the rate in a queue of 50 ms, then each is lost with this \
                 probability in either direction, then delayed. The origin and the tunnel's \
                 server are at the remote end. One stream comes from the origin for ten seconds, \
                 of which the first two do not count, and every byte is compared; then 64 bytes \
                 travel there and back, one message at a time. The queue drops packets that \
                 were sent faster than the link takes them. TCP is the kernel's, directly \
                 through the link."
            }
            Self::Rate => {
                "Eight clients open one connection after the other, send one byte, wait for it \
                 to come back, and close."
            }
            Self::Latency => {
                "One connection sends nine bytes, waits until they come back, and repeats, \
                 through the same processes as the load beside it: four flows of 60 MB/s each \
                 from the origin (5 MB/s over KCP), four that are as fast as possible, or 200 \
                 clients that download 64 KiB, pause for 200 ms and repeat. MB/s is the rate of \
                 the load beside the echoes. Load and origin use the same processors as the \
                 processes, and the threads that send and answer the echoes request short time \
                 slices from the kernel, so that their own wait is not attributed to the relay; \
                 `no relay` shows the effect of that alone. `bare splice` and `bare records` \
                 are not rivals: blocking threads without a protocol."
            }
            Self::Workers => {
                "Each process runs with this number of worker threads (`TOKIO_WORKER_THREADS`, \
                 or `GOMAXPROCS`). As many clients as there are connections open one after the \
                 other and send one byte there and back; then as many streams transfer half of \
                 the bytes up and half of them down. The load uses the same processors as the \
                 processes."
            }
            Self::Crypto => {
                "One thread, in memory, in place, by the thread's own CPU clock. The cipher is \
                 measured as adit calls it, with a key that is already expanded; XChaCha \
                 derives a subkey for every message."
            }
            Self::Cpu => {
                "On one processor, which has the instructions of all these classes, with those \
                 of newer classes disabled (`ADIT_CPU`): plain Rust; AVX2; AVX2 with VAES, \
                 VPCLMULQDQ and GFNI on 256 bits; AVX-512. In memory and on one thread, the \
                 fastest round of each, for the kernels that adit selects itself. AES-GCM is \
                 that of AWS-LC, which selects its own."
            }
            Self::Headers => {
                "One thread, in memory, by the thread's own CPU clock, with the allocations of \
                 Rust's allocator (`cargo xtask bench --instructions` includes those of C \
                 libraries). A salt is drawn from adit's own generator. Headers are single \
                 blocks, independent of each other. A packet is sealed by a client's session \
                 and opened by a server's session table, in place; the bare cipher seals the \
                 same number of payload bytes with a key that is already expanded."
            }
            Self::Kcp => {
                "Sessions: datagrams of 1,400 bytes, windows of 1,024 segments, fast3, both \
                 ends in one separate process, whose user and system time counts; kcp-go runs \
                 in a small program around it. adit's allocations are those of a run on one \
                 thread. The tunnel is kcptun's, of two processes, without compression; kcp-go \
                 there is current kcp-go, smux and snappy, combined as in kcptun. An idle \
                 session has sent one byte and received it back; its client is kcp-go for both \
                 servers, and memory is `VmRSS`. The rest is in memory and on one thread, the \
                 fastest round of each: `seal`, `open` and the checks as sessions perform them, \
                 adit with sixteen datagrams at a time, `-one` with a single one, nonces from \
                 each implementation's own generator."
            }
            Self::Fec => {
                "In memory and on one thread, the fastest round of each. All figures are \
                 divided by the data shards of a group, so they are the cost of a datagram; \
                 `decode-3` restores three of a group. `code` is the arithmetic alone, with the \
                 matrices and calls that kcp-go uses of klauspost/reedsolomon; `stage` includes \
                 adit's framing, which kcp-go does not expose."
            }
            Self::Users => {
                "One thread, in memory, by the thread's own CPU clock. A handshake is a request \
                 of 300 bytes that is read to its end, and the sealed head of the answer; users \
                 come in random order; the figure is the fastest tenth of groups of eight. By \
                 trial, a server tries the user last seen at the client's address first and all \
                 others after that, which costs a key derivation and an AEAD key each, once per \
                 connection. Transfers with quotas go through a SOCKS5 proxy of 10,000 users, for \
                 one with a quota and for the only one without in turn; it is started 5 times, for \
                 32 pairs each. All others go through two processes in turn: one logs sessions, and \
                 has an open dashboard and metrics that are read at each of its events, the other \
                 logs warnings alone. They swap roles for the second half of each pair, since two \
                 processes differ by the places of their memory; both are started 5 times, for 8 \
                 pairs each. Bytes are sent in steps of 128 KiB, each of which has arrived before \
                 the next one, by one thread that shares a processor with the processes: otherwise, \
                 it depends on who is run when how many bytes a read finds, and what a GiB costs. A \
                 percentage is how \
                 much more CPU a transfer took with than without, the median of all pairs; in 95 of \
                 100 measurements the true one is within the margin (±). The share of a core is \
                 that of a process with 10,000 idle sessions, channels of an SSH server, of \
                 which a dashboard shows the newest at each event."
            }
            Self::Fleet => {
                "Processes of adit as nodes, around one `redis-server` on a Unix socket, all on \
                 this machine with the load beside them. A gate is a bound that the fleet must \
                 keep whatever happens; faults are real signals to the processes, and commands to \
                 the store. On the data path, what is measured has a processor of its own. The \
                 costs of the store are the user and system time of its process, per call of adit's \
                 client. What many machines would do is simulated: the leases, batches and the \
                 store of adit in virtual time, with messages that are delayed and lost, and nodes \
                 that are killed."
            }
        }
    }

    /// Returns its most important quantity.
    pub(crate) const fn headline_quantity(self) -> Quantity {
        match self {
            Self::SsTcp
            | Self::SsRelay
            | Self::Socks
            | Self::SsUdp
            | Self::Ssh
            | Self::SsTable
            | Self::Ssr
            | Self::Kcp => CPU_PER_GIB,
            Self::Idle => MEMORY_PER_IDLE,
            Self::Latency => P99,
            Self::Lossy => MB_PER_SECOND,
            Self::Rate | Self::Workers => CONNECTIONS,
            Self::Crypto => SEAL_RATE,
            Self::Cpu | Self::Fec | Self::Headers | Self::Users => NS_PER_OP,
            Self::Fleet => STORE_CPU,
        }
    }
}

/// The name on the command line and in file names.
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
