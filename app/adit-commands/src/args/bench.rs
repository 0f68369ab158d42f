//! The arguments of `adit bench`.

use super::json_option::JsonOption;

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: BenchCommand,
}

#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum BenchCommand {
    /// Message authentication codes, in memory: UMAC compared with HMAC
    Mac(BenchMacArgs),
    /// Forward error correction, in memory: encoding and recovery of datagrams
    #[cfg(feature = "kcp")]
    Fec(BenchOptions),
    /// Shadowsocks, in memory: keys, headers, packets, ciphers
    Ss(BenchOptions),
    /// KCP, in memory: its windows, and sealing and opening of packets with every cipher
    #[cfg(feature = "kcp")]
    Kcp(BenchOptions),
    /// The algorithms of an SSH server, the cost of each cipher and MAC here, and a recommendation
    ///
    /// Connects and reads the lists that the server sends in the clear; it does not log in. The
    /// costs are measured on this machine, in memory: processor time of one end, without system
    /// calls.
    #[cfg(feature = "ssh")]
    Ssh(BenchSshArgs),
    /// Proxies on this machine: a transfer through client and server of each protocol, over loopback
    ///
    /// Starts both ends as processes, downloads through them, and prints the processor time of each. Other programs on
    /// the same machine hardly change that, unlike the speed.
    Proxy(BenchProxyArgs),
}

impl BenchCommand {
    /// Returns true if rows are JSON.
    pub(crate) const fn is_json(&self) -> bool {
        match self {
            Self::Mac(mac) => mac.span.output.is_json(),
            #[cfg(feature = "kcp")]
            Self::Fec(span) | Self::Kcp(span) => span.output.is_json(),
            Self::Ss(span) => span.output.is_json(),
            #[cfg(feature = "ssh")]
            Self::Ssh(ssh) => ssh.output.is_json(),
            Self::Proxy(proxy) => proxy.output.is_json(),
        }
    }
}

/// The format of the results for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchFormat {
    /// Aligned columns
    Table,
    /// A table for documents
    Markdown,
    /// A chart, as an SVG file
    Svg,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct BenchOutput {
    /// Format of the results
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = BenchFormat::Table, conflicts_with = "json")]
    pub(crate) format: BenchFormat,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

impl BenchOutput {
    /// Returns true if rows are JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json.json
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchProxyArgs {
    #[command(flatten)]
    pub(crate) output: BenchOutput,
    /// Mebibytes to download through each
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) mib: u32,
    /// Only the protocols whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Also measure the other programs that are installed: sing-box, shadowsocks-rust, shadowsocks-libev, microsocks
    #[arg(long)]
    pub(crate) compare: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchOptions {
    #[command(flatten)]
    pub(crate) output: BenchOutput,
    /// Milliseconds per row
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) millis: u32,
}

#[cfg(feature = "ssh")]
#[derive(Debug, clap::Args)]
pub(crate) struct BenchSshArgs {
    /// The server; the default port is 22
    #[arg(value_name = "[USER@]HOST[:PORT]")]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
    /// Milliseconds per cipher and MAC
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) millis: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchMacArgs {
    #[command(flatten)]
    pub(crate) span: BenchOptions,
    /// Lengths of the messages, in bytes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "32,1024",
          value_parser = clap::value_parser!(u32).range(..=1 << 24))]
    pub(crate) bytes: Vec<u32>,
}
