//! What may be typed.

pub(crate) mod kcp;

use std::path::PathBuf;

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

Environment: ADIT_CPU=portable|avx2|avx512 keeps newer instructions out of the ciphers,
ADIT_IO=portable keeps splice and UDP batches out of the engine, NO_COLOR colours out of the log

Exit codes: 0 ok, 1 failure, 2 usage, 3 configuration, 4 network, 5 key, 6 clock")]
pub(crate) struct Args {
    /// Say more: -v connections, -vv every datagram and retry, -vvv the libraries too
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it: a server and a client in one process, and a proxy on 127.0.0.1:1080
    Up(Up),
    /// Serve: make and keep a key, pick the fastest safe cipher, print URL and QR code
    Server(Server),
    /// Use a server: a SOCKS5 and HTTP proxy on this machine
    Client(Client),
    /// Run any listeners and chains, from URLs or from a file
    Run(Plan),
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
    /// The two ends of a kcptun tunnel, with kcptun's options and files
    ///
    /// TCP connections to the client travel over KCP, which repairs losses faster than TCP, and are
    /// made again by the server to one fixed target.
    #[command(subcommand)]
    Kcp(kcp::Kcp),
    /// Help on a command, on a scheme (ss, socks5, mixed …) or on URLS
    Help(Help),
    /// Print shell completions
    Completion(Completion),
    /// Print the manual page, or write all pages into a folder
    Man(Man),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Stop after the request was carried, instead of leaving the proxy running
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Address to listen on
    #[arg(long, short, default_value = "[::]:8388", value_name = "ADDR:PORT")]
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
    /// Do not print the QR code
    #[arg(long)]
    pub(crate) no_qr: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Client {
    /// The server's URL, as `adit server` printed it
    pub(crate) url: String,
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
    /// A listener; begins a route, or joins the one before while that has no hop
    #[arg(short = 'L', long, value_name = "URL")]
    pub(crate) listen: Vec<String>,
    /// A hop of the route before it
    #[arg(short = 'F', long, value_name = "URL")]
    pub(crate) forward: Vec<String>,
    /// A TOML file with the same URLs, or another program's JSON (see `adit help convert`)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["words", "listen", "forward"])]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Url {
    /// The link, in any form
    pub(crate) url: String,
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
pub(crate) struct Help {
    /// A command, a scheme, or URLS
    pub(crate) topic: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
