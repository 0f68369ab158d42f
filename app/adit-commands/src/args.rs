//! What may be typed.

pub(crate) mod classic;
pub(crate) mod ends;
pub(crate) mod kcp;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_wire::Target;
use clap::{ArgAction, Parser, Subcommand};

/// Encrypted tunnels and proxies in one binary.
///
/// Every end is a URL: `mixed://127.0.0.1:1080` listens, `ss://METHOD:KEY@host:8388` is a server
/// as a listener and a hop as part of a chain. `adit help URLS` lists the schemes, `adit help ss`
/// explains one.
#[derive(Debug, Parser)]
#[command(
    name = "adit",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(after_help = "\
Try it:          adit up
On a server:     adit server
At home:         adit client 'ss://…'
Anything else:   adit run LISTEN [HOP…]        adit help URLS

Environment: ADIT_CPU=portable|avx2|avx2-vaes|avx512 keeps newer instructions out of ciphers and
error correction, ADIT_IO=portable keeps splice and UDP batches out of the engine, NO_COLOR colours
out of the log

Exit codes: 0 ok, 1 failure, 2 usage, 3 configuration, 4 network, 5 key, 6 clock,
130 and 143 interrupted or terminated before it served or had an answer")]
pub(crate) struct Args {
    /// Say more: -v connections, -vv every datagram and retry, -vvv the libraries too
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// What `adit ssh -f` and `adit ss-local -f` start themselves with.
    #[cfg(unix)]
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it: a server and a client in one process, and a proxy on 127.0.0.1:1080
    Up(Up),
    /// Serve: make and keep a key, pick the fastest safe cipher, print URL and QR code
    ///
    /// Off a terminal URL and code are not printed, since a log would keep the key in them:
    /// `adit server url` prints the URL.
    Server(Server),
    /// Use a server, or a subscription: a SOCKS5 and HTTP proxy on this machine
    Client(Client),
    /// Run any listeners and chains, from URLs or from a file
    Run(Run),
    /// Serve many ports, which a program adds and removes by datagrams (ss-manager)
    ///
    /// Speaks the protocol of ss-manager (add, remove, list, ping), in one process for all ports.
    /// Whoever reaches the manager's address may begin servers and read their passwords: a path
    /// makes a Unix socket for you alone.
    Manager(Manager),
    /// Read a link in any form and write it canonically
    Url(Url),
    /// Show a link as a QR code
    Qr(Url),
    /// Make a key for a method
    Keygen(Keygen),
    /// Check URLs or a file without running them
    Check(Plan),
    /// Write another program's configuration as adit's own
    ///
    /// Reads the JSON of shadowsocks-libev, shadowsocks-rust and shadowsocks-go, SIP008
    /// documents, and `ss://` links (Outline's too) in plain text or base64. What has no
    /// equivalent is told on standard error. `adit run -c FILE.json` converts on the way.
    Convert(Convert),
    /// Draw the plan that URLs or a file mean
    Explain(Plan),
    /// Measure what this machine can do
    Bench(Bench),
    /// The two ends of a kcptun tunnel, with kcptun's options and files
    ///
    /// TCP connections to the client travel over KCP, which repairs losses faster than TCP, and are
    /// made again by the server to one fixed target.
    #[command(subcommand)]
    Kcp(kcp::Kcp),
    /// Find out why a server cannot be used, step by step
    ///
    /// Looks the server up, connects to it, speaks with it as the URL says, and sends a datagram
    /// through it. If the server does not understand us, settings beside ours are tried with the
    /// same password (`--tries`): every try is a connection that somebody on the way can see.
    /// Exit codes: 0 all is well, 3 the URL is wrong, 4 the network, 5 key or settings, 6 clocks.
    Doctor(Doctor),
    /// Run a program or a shell on another machine, and forward ports, by SSH
    ///
    /// Options, configuration, known hosts, keys and agent are those of OpenSSH's `ssh`.
    /// Exit code: that of the program, 255 if there is none.
    #[cfg(unix)]
    #[command(version, args_override_self = true)]
    Ssh(Box<adit_ssh_commands::args::Ssh>),
    /// Serve SSH: you, and nobody else, can log in with the keys of a file
    ///
    /// Gives programs, shells with terminals, files (sftp, scp) and forwarding to the user who
    /// started it, on a port of his own; root is not needed. The host key is made on the first
    /// start.
    #[cfg(unix)]
    Sshd(adit_ssh_commands::args::Sshd),
    /// Work with the files of another machine, by SSH
    ///
    /// Reads commands as OpenSSH's `sftp` does; `help` lists them.
    /// Exit codes: 0 ok, 1 a command of a batch failed, 255 no connection.
    #[cfg(unix)]
    Sftp(adit_ssh_commands::args::Sftp),
    /// Copy files to, from or between other machines, by SSH
    ///
    /// Exit codes: 0 ok, 1 something was not copied, 255 no connection.
    #[cfg(unix)]
    Scp(adit_ssh_commands::args::Scp),
    /// Serve files by SFTP on standard input and output
    ///
    /// For an SSH server: `Subsystem sftp /usr/bin/adit sftp-server` in its configuration.
    #[cfg(unix)]
    #[command(hide = true)]
    SftpServer(adit_ssh_commands::args::SftpServer),
    /// Shadowsocks and ShadowsocksR by the command lines that people have
    #[command(flatten)]
    Classic(classic::Classic),
    /// Make ss-local, ss-server, ssr-local … of this program: links in a folder
    ///
    /// Started by one of these names it takes the options of shadowsocks-libev and
    /// shadowsocksr-libev. A file of the name that is something else stays as it is.
    InstallAliases(InstallAliases),
    /// Help on a command, on a scheme (ss, socks5, mixed …), on URLS, or on the configuration file:
    /// config, rules, groups, users
    Help(Help),
    /// Print shell completions
    Completion(Completion),
    /// Print how a word of a command line may go on, for the scripts of `adit completion`
    #[command(hide = true)]
    Complete(Complete),
    /// Print a manual page, or write all pages into a folder
    Man(Man),
}

impl Command {
    /// Whether the log is to be silent, and the file it goes to.
    pub(crate) fn log(&self) -> (bool, Option<&Path>) {
        match self {
            #[cfg(unix)]
            Self::Ssh(ssh) => (ssh.is_quiet(), ssh.log_file()),
            #[cfg(unix)]
            Self::Sshd(sshd) => (false, sshd.log_file()),
            _ => (false, None),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Stop after the request was carried, instead of leaving the proxy running
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: BenchWhat,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BenchWhat {
    /// Message authentication codes, in memory: UMAC beside HMAC
    Mac(BenchMac),
    /// Forward error correction, in memory: encoding and restoring of datagrams
    Fec(BenchSpan),
    /// Shadowsocks, in memory: keys, headers, packets, ciphers
    Ss(BenchSpan),
    /// KCP, in memory: its windows, and sealing and opening of packets under every cipher
    Kcp(BenchSpan),
    /// What an SSH server offers, what each cipher and MAC would cost here, and which to take
    ///
    /// Connects and reads the lists that the server sends in the clear; nobody logs in. The costs
    /// are those of this machine, in memory: processor time of one end, without system calls.
    Ssh(BenchSsh),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSpan {
    /// One JSON object a line: name, bytes, ns_per_op
    #[arg(long)]
    pub(crate) json: bool,
    /// Milliseconds for each row
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) millis: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSsh {
    /// The server; without a port, 22
    #[arg(value_name = "[USER@]HOST[:PORT]")]
    pub(crate) host: String,
    /// One JSON object a line: `offer`, `cost` for each cipher and MAC, `advice`
    #[arg(long)]
    pub(crate) json: bool,
    /// Milliseconds for each cipher and MAC
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) millis: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchMac {
    #[command(flatten)]
    pub(crate) span: BenchSpan,
    /// Lengths of messages
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "32,1024",
          value_parser = clap::value_parser!(u32).range(..=1 << 24))]
    pub(crate) bytes: Vec<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Print the URL of a server with the kept key, and end
    #[arg(value_name = "url", hide_possible_values = true)]
    pub(crate) ask: Option<ServerAsk>,
    /// Address to listen on
    #[arg(long, short, default_value = SERVER_LISTEN, value_name = "ADDR:PORT")]
    pub(crate) listen: String,
    /// Host name or address that clients use, for the printed URL
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Method instead of the fastest one; makes a new key if the kept one is of another method
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Folder for the key instead of the user's state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Private destinations that clients may reach: CIDRs or `all`
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
    /// Print the URL and the QR code off a terminal too, where a log may keep the key in them
    #[arg(long)]
    pub(crate) show_url: bool,
    /// Do not print the QR code
    #[arg(long)]
    pub(crate) no_qr: bool,
}

/// Where `adit server` listens.
pub(crate) const SERVER_LISTEN: &str = "[::]:8388";

/// What `adit server` can do besides serving.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ServerAsk {
    Url,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Client {
    /// The server's URL, as `adit server` printed it
    #[arg(required_unless_present = "subscribe", conflicts_with = "subscribe")]
    pub(crate) url: Option<String>,
    /// Use the servers of a document instead: SIP008, an `ssconf` key, or `ss://` and `ssr://` links (https)
    #[arg(long, value_name = "URL")]
    pub(crate) subscribe: Option<String>,
    /// How often the document is fetched again
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = adit_cli::read_time)]
    pub(crate) refresh: Duration,
    /// A plugin that its servers may need; can be repeated
    #[arg(long, value_name = "NAME", requires = "subscribe")]
    pub(crate) allow_plugin: Vec<String>,
    /// Folder in which the last document is kept, instead of the user's state folder
    #[arg(long, value_name = "DIR", requires = "subscribe")]
    pub(crate) state: Option<PathBuf>,
    /// Where to listen
    #[arg(
        long,
        short,
        default_value = "mixed://127.0.0.1:1080",
        value_name = "URL"
    )]
    pub(crate) listen: Vec<String>,
    /// Only find out whether the server accepts us, then end
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// The first URL listens, the others are the chain, in the order of the way
    #[arg(value_name = "URL", required_unless_present_any = ["config", "listen"])]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) ends: ends::Ends,
    /// A TOML file with the same URLs, or another program's JSON (see `adit help convert`)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["words", "listen", "forward"])]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) plan: Plan,
    /// Serve the management API and /metrics: the path of a Unix socket, or a port of this machine
    #[arg(long, value_name = "PATH|HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// A file with the token that requests to the API must show; a port needs one. Several stand in
    /// lines of their own; `reveal` behind one lets it see keys
    #[arg(long, value_name = "@FILE", requires = "admin")]
    pub(crate) admin_token: Option<String>,
    /// Host name or address of the servers in the subscriptions of their users
    #[arg(long, value_name = "HOST", requires = "admin")]
    pub(crate) public_host: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Manager {
    /// Where commands come in: a UDP port of this machine, or the path of a Unix socket
    #[arg(long, value_name = "HOST:PORT|PATH")]
    pub(crate) manager_address: String,
    /// Take commands from an address that other machines reach
    #[arg(long)]
    pub(crate) manager_insecure: bool,
    /// Address that the servers listen on, instead of all; can be repeated
    #[arg(short = 's', long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Method of servers that name none
    #[arg(
        short,
        long,
        default_value = "chacha20-ietf-poly1305",
        value_name = "METHOD"
    )]
    pub(crate) method: String,
    /// What servers carry that do not say so
    #[arg(long, value_enum, default_value = "tcp_only", value_name = "MODE")]
    pub(crate) mode: Carried,
    /// Plugin of servers that name none
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Options of that plugin
    #[arg(long, value_name = "OPTIONS", requires = "plugin")]
    pub(crate) plugin_opts: Option<String>,
    /// A plugin that a server may name besides; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_plugin: Vec<String>,
    /// Private destinations that clients may reach: CIDRs or `all`
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
}

/// What a server carries, by the names that ss-manager has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Carried {
    /// Connections
    TcpOnly,
    /// Datagrams
    UdpOnly,
    /// Both
    TcpAndUdp,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Url {
    /// The link, in any form
    pub(crate) url: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InstallAliases {
    /// The folder, such as /usr/local/bin
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Keygen {
    /// The method the key is for
    #[arg(default_value = "2022-blake3-aes-128-gcm")]
    pub(crate) method: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    /// The file to read; `-` is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The end that the configuration is for, instead of a guess
    #[arg(long, value_enum, value_name = "END")]
    pub(crate) role: Option<End>,
    /// Write into this new file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// A plugin that a subscription or a link may start; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_plugin: Vec<String>,
}

/// The ends of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum End {
    /// A local proxy that uses servers
    Client,
    /// A server
    Server,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// The server: ss://, ssr://, socks5://, socks4a:// or http://, a share link too
    pub(crate) url: String,
    /// A web server that is asked for a page's head through the server, to see that it carries; and
    /// by which servers that are not adit show themselves
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: Option<Target>,
    /// A name server that is asked by a datagram through the server
    #[arg(long, default_value = "1.1.1.1:53", value_name = "ADDR:PORT")]
    pub(crate) dns: Target,
    /// Other settings to try, at most, if the server does not understand us; 0 for none
    #[arg(long, default_value_t = 60, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=200))]
    pub(crate) tries: u16,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// A command, a scheme, URLS, config, rules, groups or users
    pub(crate) topic: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Complete {
    /// The shell that asks
    #[arg(long)]
    pub(crate) shell: CompleteFor,
    /// The word that goes on, counted from 0, which is the program
    #[arg(long, value_name = "N")]
    pub(crate) index: usize,
    /// Inside of quotes: nothing is escaped
    #[arg(long)]
    pub(crate) raw: bool,
    /// The words of the line
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

/// Shells whose scripts ask the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompleteFor {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The page: adit (the default), a command, adit.toml or adit-urls
    #[arg(conflicts_with = "dir")]
    pub(crate) page: Option<String>,
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
