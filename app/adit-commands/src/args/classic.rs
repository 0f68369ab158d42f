//! The command lines of shadowsocks-libev and shadowsocksr-libev, under the names of their
//! programs.

use std::path::PathBuf;

use clap::Subcommand;

/// A program of shadowsocks-libev or shadowsocksr-libev.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ClassicCommand {
    /// Run a local proxy that uses a Shadowsocks server, with the options of ss-local
    #[command(args_override_self = true)]
    SsLocal(SsLocalArgs),
    /// Run a Shadowsocks server, with the options of ss-server
    #[command(args_override_self = true)]
    SsServer(SsServerArgs),
    /// Forward a port to one target, with the options of ss-tunnel
    #[command(args_override_self = true)]
    SsTunnel(SsTunnelArgs),
    /// Run a transparent proxy for traffic that a firewall redirects, with the options of ss-redir
    #[command(args_override_self = true)]
    SsRedir(SsRedirArgs),
    /// Run servers that are added and removed by datagrams, with the options of ss-manager
    #[command(args_override_self = true)]
    SsManager(SsManagerArgs),
    /// Run a local proxy that uses a ShadowsocksR server, with the options of ssr-local
    #[command(args_override_self = true)]
    SsrLocal(SsrLocalArgs),
    /// Run a ShadowsocksR server, with the options of ssr-server
    #[command(args_override_self = true)]
    SsrServer(SsrServerArgs),
}

// The options that all of these programs share.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CommonOptions {
    /// Host of the server, or the address that a server listens on; can be repeated
    #[arg(short = 's', value_name = "HOST", action = clap::ArgAction::Append)]
    pub(crate) server: Vec<String>,
    /// Port of the server
    #[arg(short = 'p', value_name = "PORT")]
    pub(crate) server_port: Option<u16>,
    /// Local port to listen on
    #[arg(short = 'l', value_name = "PORT")]
    pub(crate) local_port: Option<u16>,
    /// Local address to listen on
    #[arg(short = 'b', value_name = "ADDRESS")]
    pub(crate) local_address: Option<String>,
    /// Password; all users of this machine can read it on the command line
    #[arg(short = 'k', long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// Cipher [default: chacha20-ietf-poly1305; with ShadowsocksR none]
    #[arg(short = 'm', value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Seconds after which an idle connection is closed
    #[arg(short = 't', value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// JSON configuration file; options override its values
    #[arg(short = 'c', value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Carry TCP and UDP
    #[arg(short = 'u')]
    pub(crate) udp: bool,
    /// Carry UDP only
    #[arg(short = 'U')]
    pub(crate) udp_alone: bool,
    /// Prefer IPv6 addresses of a host name
    #[arg(short = '6')]
    pub(crate) ipv6_first: bool,
    /// Open connections to the server with TCP Fast Open
    #[arg(long)]
    pub(crate) fast_open: bool,
    /// SIP003 plugin
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Options of the plugin
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) plugin_opts: Option<String>,
    /// A raw key in base64; not supported, use a password
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) process: ProcessOptions,
    #[command(flatten)]
    pub(crate) idle: IgnoredOptions,
}

// The options of the process itself.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProcessOptions {
    /// Go into the background once the ports are open, and write the process ID to this file
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,
    /// Switch to this user once the ports are open
    #[arg(short = 'a', value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Maximum number of open files [default: the maximum that the system allows]
    #[arg(short = 'n', value_name = "N")]
    pub(crate) nofile: Option<u64>,
    /// Network interface for outgoing traffic (Linux)
    #[arg(short = 'i', value_name = "NAME")]
    pub(crate) interface: Option<String>,
}

// Options that are accepted and have no effect, because adit decides them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct IgnoredOptions {
    /// No effect
    #[arg(long)]
    pub(crate) reuse_port: bool,
    /// No effect: always on
    #[arg(long)]
    pub(crate) no_delay: bool,
    /// No effect: the system discovers the MTU
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<u32>,
    /// No effect
    #[arg(long)]
    pub(crate) mptcp: bool,
}

// The additional options of ShadowsocksR programs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsrOptions {
    /// Protocol plugin [default: origin]
    #[arg(short = 'O', value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Parameter of the protocol
    #[arg(short = 'G', value_name = "TEXT")]
    pub(crate) protocol_param: Option<String>,
    /// Obfuscation [default: plain]
    #[arg(short = 'o', value_name = "OBFS")]
    pub(crate) obfs: Option<String>,
    /// Parameter of the obfuscation
    #[arg(short = 'g', value_name = "TEXT")]
    pub(crate) obfs_param: Option<String>,
}

// The option for rules of destinations.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AclOptions {
    /// ACL file: destinations that are reached through the server, directly, or not at all
    #[arg(long, value_name = "FILE")]
    pub(crate) acl: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsLocalArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    #[command(flatten)]
    pub(crate) acl: AclOptions,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsServerArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    #[command(flatten)]
    pub(crate) acl: AclOptions,
    /// Name servers; no effect: the system's resolver looks names up
    #[arg(short = 'd', value_name = "ADDRESS")]
    pub(crate) nameserver: Option<String>,
    /// Not supported: `adit ss-manager` runs its servers in one process and counts their traffic
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) manager_address: Option<String>,
    /// Private destinations that clients may reach: CIDRs or `all` [default: none]
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsTunnelArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    /// Target of the forwarded port
    #[arg(short = 'L', value_name = "HOST:PORT")]
    pub(crate) target: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsRedirArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    /// The firewall redirects TCP with TPROXY instead of REDIRECT
    #[arg(short = 'T')]
    pub(crate) tproxy: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsManagerArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    /// Where commands are received: a loopback UDP port, or the path of a Unix socket
    #[arg(long, value_name = "HOST:PORT|PATH")]
    pub(crate) manager_address: Option<String>,
    /// No effect: all servers run in this process
    #[arg(long, value_name = "PATH")]
    pub(crate) executable: Option<PathBuf>,
    /// No effect: no files are written
    #[arg(short = 'D', value_name = "PATH")]
    pub(crate) folder: Option<PathBuf>,
    /// Name servers; no effect: the system's resolver looks names up
    #[arg(short = 'd', value_name = "ADDRESS")]
    pub(crate) nameserver: Option<String>,
    /// Private destinations that clients may reach: CIDRs or `all` [default: none]
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsrLocalArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    #[command(flatten)]
    pub(crate) ssr: SsrOptions,
    #[command(flatten)]
    pub(crate) acl: AclOptions,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsrServerArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    #[command(flatten)]
    pub(crate) ssr: SsrOptions,
    #[command(flatten)]
    pub(crate) acl: AclOptions,
    /// Private destinations that clients may reach: CIDRs or `all` [default: none]
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}
