//! The command lines of shadowsocks-libev and shadowsocksr-libev, by the names of their programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Subcommand;

/// A program of shadowsocks-libev or shadowsocksr-libev.
#[derive(Debug, Subcommand)]
pub(crate) enum Classic {
    /// A proxy on this machine that uses a Shadowsocks server; options of ss-local
    #[command(args_override_self = true)]
    SsLocal(Local),
    /// A Shadowsocks server; options of ss-server
    #[command(args_override_self = true)]
    SsServer(Server),
    /// A port that leads to one target; options of ss-tunnel
    #[command(args_override_self = true)]
    SsTunnel(Tunnel),
    /// A port for what a firewall turns this way; options of ss-redir
    #[command(args_override_self = true)]
    SsRedir(Redir),
    /// Servers that come and go by datagrams; options of ss-manager
    #[command(args_override_self = true)]
    SsManager(Manager),
    /// A proxy on this machine that uses a ShadowsocksR server; options of ssr-local
    #[command(args_override_self = true)]
    SsrLocal(SsrLocal),
    /// A ShadowsocksR server; options of ssr-server
    #[command(args_override_self = true)]
    SsrServer(SsrServer),
}

/// The names under which the program is all of this.
pub(crate) const NAMES: [&str; 7] = [
    "ss-local",
    "ss-server",
    "ss-tunnel",
    "ss-redir",
    "ss-manager",
    "ssr-local",
    "ssr-server",
];

/// What all of them have.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Server: its name or address, or where to listen; can be repeated
    #[arg(short = 's', value_name = "HOST", action = clap::ArgAction::Append)]
    pub(crate) server: Vec<String>,
    /// The server's port
    #[arg(short = 'p', value_name = "PORT")]
    pub(crate) server_port: Option<u16>,
    /// The local port
    #[arg(short = 'l', value_name = "PORT")]
    pub(crate) local_port: Option<u16>,
    /// The local address
    #[arg(short = 'b', value_name = "ADDRESS")]
    pub(crate) local_address: Option<String>,
    /// The password; every user of this machine can read it on the command line
    #[arg(short = 'k', long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// The cipher [default: chacha20-ietf-poly1305, of ShadowsocksR none]
    #[arg(short = 'm', value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Seconds after which an idle connection is closed
    #[arg(short = 't', value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// A JSON file; options win
    #[arg(short = 'c', value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Carry UDP, too
    #[arg(short = 'u')]
    pub(crate) udp: bool,
    /// Carry UDP alone
    #[arg(short = 'U')]
    pub(crate) udp_alone: bool,
    /// IPv6 addresses of a name before IPv4
    #[arg(short = '6')]
    pub(crate) ipv6_first: bool,
    /// Begin connections to the server with TCP Fast Open
    #[arg(long)]
    pub(crate) fast_open: bool,
    /// A SIP003 plugin
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Its options
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) plugin_opts: Option<String>,
    /// A raw key in base64, which is refused: take a password
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) process: Process,
    #[command(flatten)]
    pub(crate) idle: Idle,
}

/// What the process is to be.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Process {
    /// Go into the background once it serves, and write the process number into this file
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,
    /// Become this user once the ports are open
    #[arg(short = 'a', value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Open files at most, instead of as many as the system allows
    #[arg(short = 'n', value_name = "N")]
    pub(crate) nofile: Option<u64>,
    /// Leave this machine by this network interface (Linux)
    #[arg(short = 'i', value_name = "NAME")]
    pub(crate) interface: Option<String>,
}

/// What is taken and changes nothing: adit sets it itself.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Idle {
    /// Changes nothing
    #[arg(long)]
    pub(crate) reuse_port: bool,
    /// Changes nothing: it is always so
    #[arg(long)]
    pub(crate) no_delay: bool,
    /// Changes nothing: the system finds it
    #[arg(long, value_name = "BYTES")]
    pub(crate) mtu: Option<u32>,
    /// Changes nothing
    #[arg(long)]
    pub(crate) mptcp: bool,
}

/// What a ShadowsocksR program has besides.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Ssr {
    /// Protocol [default: origin]
    #[arg(short = 'O', value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Its parameter
    #[arg(short = 'G', value_name = "TEXT")]
    pub(crate) protocol_param: Option<String>,
    /// Obfs [default: plain]
    #[arg(short = 'o', value_name = "OBFS")]
    pub(crate) obfs: Option<String>,
    /// Its parameter
    #[arg(short = 'g', value_name = "TEXT")]
    pub(crate) obfs_param: Option<String>,
}

/// Requests that go another way.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Acl {
    /// An ACL file: which destinations go by the server, directly, or nowhere
    #[arg(long, value_name = "FILE")]
    pub(crate) acl: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Local {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) acl: Acl,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Server {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) acl: Acl,
    /// Name servers: left out, the system's resolver looks names up
    #[arg(short = 'd', value_name = "ADDRESS")]
    pub(crate) nameserver: Option<String>,
    /// A manager that is told the traffic, which is refused: `ss-manager` keeps its servers itself
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) manager_address: Option<String>,
    /// Private destinations that clients may reach: CIDRs or `all`; none without it
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Tunnel {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Where the port leads
    #[arg(short = 'L', value_name = "HOST:PORT")]
    pub(crate) target: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Redir {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The firewall turns TCP this way by TPROXY, not by REDIRECT
    #[arg(short = 'T')]
    pub(crate) tproxy: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Manager {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Where commands come in: a UDP port of this machine, or the path of a Unix socket
    #[arg(long, value_name = "HOST:PORT|PATH")]
    pub(crate) manager_address: Option<String>,
    /// Changes nothing: all servers are in this process
    #[arg(long, value_name = "PATH")]
    pub(crate) executable: Option<PathBuf>,
    /// Changes nothing: no files are written
    #[arg(short = 'D', value_name = "PATH")]
    pub(crate) folder: Option<PathBuf>,
    /// Name servers: left out, the system's resolver looks names up
    #[arg(short = 'd', value_name = "ADDRESS")]
    pub(crate) nameserver: Option<String>,
    /// Private destinations that clients may reach: CIDRs or `all`; none without it
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsrLocal {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) ssr: Ssr,
    #[command(flatten)]
    pub(crate) acl: Acl,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SsrServer {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) ssr: Ssr,
    #[command(flatten)]
    pub(crate) acl: Acl,
    /// Private destinations that clients may reach: CIDRs or `all`; none without it
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

/// The words as they were typed, with the command in front if the program was started by the name
/// of one.
pub(crate) fn by_name(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let name = words.first().map(Path::new).and_then(Path::file_stem);
    let name = name.and_then(|name| NAMES.into_iter().find(|known| name == *known));
    if let Some(name) = name {
        words.insert(1, name.into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_is_a_command() {
        let words = |words: &[&str]| {
            let words = by_name(words.iter().map(OsString::from));
            words
                .iter()
                .map(|w| w.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(&["/usr/bin/ss-local", "-u"]),
            ["/usr/bin/ss-local", "ss-local", "-u"]
        );
        assert_eq!(words(&["ssr-server.exe"]), ["ssr-server.exe", "ssr-server"]);
        assert_eq!(words(&["adit", "ss-local"]), ["adit", "ss-local"]);
        assert!(words(&[]).is_empty());
    }
}
