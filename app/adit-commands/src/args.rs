//! The command-line arguments, as `clap` parses them.

#[cfg(feature = "bench")]
pub(crate) mod bench;
#[cfg(feature = "classic")]
pub(crate) mod classic;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod json_option;
#[cfg(feature = "kcp")]
pub(crate) mod kcp;
#[cfg(feature = "admin")]
pub(crate) mod process;
pub(crate) mod program_name;
pub(crate) mod route_options;
pub(crate) mod service;
#[cfg(feature = "admin")]
pub(crate) mod user;

#[cfg(feature = "manual")]
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use adit_config::LogFormat;
use adit_wire::Target;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand};

use self::json_option::JsonOption;
#[cfg(feature = "admin")]
pub(crate) use self::process::*;
use crate::logging::{LogOptions, ModuleFilter};

/// True in a build without the management API and subscriptions, whose options are errors there.
const IS_UNMANAGED: bool = !cfg!(feature = "admin");

/// True in a build without the export over OTLP, whose option is an error there.
const IS_WITHOUT_OTLP: bool = !cfg!(feature = "otlp");

/// Encrypted tunnels and proxies in one binary.
///
/// Every endpoint is a URL: `mixed://127.0.0.1:1080` listens, `ss://METHOD:KEY@host:8388` is a server
/// as a listener and a hop as part of a chain. `adit help URLS` lists the schemes, `adit help ss`
/// explains one.
#[derive(Debug, Parser)]
#[command(
    name = "adit",
    version,
    long_version = crate::features::long_version(),
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(after_help = "\
Try it:          adit up
On a server:     adit server
At home:         adit client 'ss://…'
Anything else:   adit run LISTEN [HOP…]        adit help URLS
As in gost:      adit -L :1080 -F ss://…       is `adit run`

Environment: ADIT_CPU=portable|avx2|avx2-vaes|avx512 limits the CPU instructions of ciphers and
error correction, ADIT_IO=portable turns off splice and UDP batches, NO_COLOR turns off colours in
the log; ADIT_LOG=FILTER and ADIT_LOG_FORMAT=FORMAT are --log and --log-format of every command

Exit codes: 0 ok, 1 failure, 2 usage, 3 configuration, 4 network, 5 key, 6 clock,
130 interrupted (Ctrl-C), 143 terminated before it served or had an answer")]
pub(crate) struct Args {
    /// Log more: -v connections, -vv every datagram and retry, -vvv the libraries too
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Marks the process that `adit ssh -f` or `adit ss-local -f` starts in the background.
    #[cfg(unix)]
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
// The options of a command are built when it is used: those of all take memory and time at each start.
#[command(defer = true)]
#[allow(
    clippy::large_enum_variant,
    reason = "a process has one, and builds with few features have few large ones"
)]
pub(crate) enum Command {
    /// Try it: a server and a client in one process, and a proxy on 127.0.0.1:1080
    Up(UpArgs),
    /// Run a server: make and keep a key, pick the fastest safe cipher, print URL and QR code
    ///
    /// If standard output is not a terminal, neither is printed, because a log would keep the key:
    /// `adit server url` prints the URL.
    Server(ServerArgs),
    /// Use a server, or a subscription: a SOCKS5 and HTTP proxy on this machine
    Client(ClientArgs),
    /// Run any listeners and chains, from URLs or from a file
    Run(RunArgs),
    /// Check that a running `adit run` answers at its management API, and show its figures
    ///
    /// For health checks of containers and supervisors: exit code 0 if it answers within four
    /// seconds, 4 if not. The check needs no token; without one, an API at a port shows no figures.
    #[cfg(feature = "admin")]
    Status(StatusArgs),
    /// List the open sessions of a running `adit run`, or end one
    #[cfg(feature = "admin")]
    Sessions(SessionsArgs),
    /// List the listeners and groups of a running `adit run`, with their traffic and health
    #[cfg(feature = "admin")]
    Routes(RoutesArgs),
    /// Watch a running `adit run` live: traffic, sessions, users, groups, listeners
    ///
    /// Sorts, filters and ends sessions, and selects the members of groups; `?` lists the keys.
    /// Exit code 4 if the process cannot be reached or has ended. `NO_COLOR` turns off colours.
    #[cfg(feature = "top")]
    Top(TopArgs),
    /// Show a running `adit run` in a browser: traffic, sessions, groups and users
    ///
    /// Opens a port of this machine for your browser and forwards its requests to the management API,
    /// which may be a Unix socket. Prints the address of the page with a token that is valid until the
    /// command ends.
    #[cfg(feature = "admin")]
    Dashboard(DashboardArgs),
    /// Replace a running `adit run` by a new version, without closing a connection
    ///
    /// The running process starts the program with the same arguments, hands its sockets over, and
    /// lets its own connections end (`[run] drain`). If the new process cannot start, the running one
    /// continues unchanged. Without an API: `kill -USR2 PID`. Linux only.
    #[cfg(feature = "admin")]
    Upgrade(UpgradeArgs),
    /// Add, limit, show and remove the users of a running `adit run`, or of a realm
    ///
    /// Speaks to the management API of the process, or with a realm's store (`adit fleet`). Users are those of `ss` servers and of proxies with a
    /// file of users; limits are for each name, whatever listeners the user has: traffic, time, speed,
    /// sessions and devices.
    #[cfg(feature = "admin")]
    #[command(subcommand)]
    User(user::UserCommand),
    /// Share users between several servers: realms, nodes, drains and upgrades
    ///
    /// A realm is one user base in a store server (Valkey or Redis), a node is a server with
    /// `users=fleet`. `adit user` adds and limits the users of a realm.
    #[cfg(feature = "fleet")]
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// Install adit as a service of systemd, OpenRC or launchd, or remove it
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Have the programs of this desktop use a proxy, and restore the settings afterwards
    ///
    /// Changes the settings of GNOME and other desktops with GSettings, of KDE, of macOS or of
    /// Windows. Programs that do not read them, such as those of a terminal, do not change.
    #[command(subcommand)]
    SystemProxy(service::SystemProxyCommand),
    /// Run servers on many ports, which another program adds and removes by datagrams (ss-manager)
    ///
    /// Implements the protocol of ss-manager (add, remove, list, ping), with one process for all
    /// ports. Every program that reaches the manager's address can start servers and read their
    /// passwords: a path creates a Unix socket that only you can use.
    #[cfg(feature = "admin")]
    Manager(ManagerArgs),
    /// Print a link of any form in its canonical form
    Url(UrlArgs),
    /// Show a link as a QR code
    Qr(UrlArgs),
    /// Make a key for a method
    Keygen(KeygenArgs),
    /// Check URLs or a file without running them
    Check(CheckArgs),
    /// Convert another program's configuration to adit's
    ///
    /// Reads the files of shadowsocks-libev, shadowsocks-rust, shadowsocks-go and ShadowsocksR, the
    /// servers and groups of Clash, sing-box and Xray, SIP008 documents, and `ss://` and `ssr://` links
    /// (Outline's too) in plain text or base64. Settings without an equivalent are listed on standard
    /// error. `adit run -c FILE.json` converts before it runs.
    #[cfg(feature = "convert")]
    Convert(ConvertArgs),
    /// Print a JSON Schema of the configuration file, for editors
    ///
    /// The schema has all tables and keys with their types and descriptions. `adit check -c FILE`
    /// finds more mistakes, such as those in URLs.
    Schema,
    /// Draw the routes that URLs or a file describe, or explain the rule that decides about a target
    Explain(ExplainArgs),
    /// Measure the speed of this machine
    #[cfg(feature = "bench")]
    Bench(bench::BenchArgs),
    /// Run either end of a kcptun tunnel, with kcptun's options and files
    ///
    /// The client carries TCP connections over KCP, which recovers lost packets faster than TCP. The
    /// server connects each of them to one fixed target.
    #[cfg(feature = "kcp")]
    #[command(subcommand)]
    Kcp(kcp::KcpCommand),
    /// Find out why a server does not work, step by step
    ///
    /// Looks up the server, connects to it, uses the protocol of the URL with it, and sends a
    /// datagram through it. If the server does not understand the client, similar settings are tried
    /// with the same password (`--tries`): each try is a connection that the network can observe.
    /// Of a `mixed://` proxy both protocols are used; of a forwarding or transparent listener the port
    /// and the target are connected to; `direct://` is the network of this machine.
    /// Exit codes: 0 the server works, 3 wrong URL, 4 network, 5 key or settings, 6 clocks.
    Doctor(DoctorArgs),
    /// Run a program or a shell on another machine, and forward ports, over SSH
    ///
    /// Options, configuration, known hosts, keys and agent are those of OpenSSH's `ssh`.
    /// Exit code: that of the program; 255 if there is none.
    #[cfg(feature = "ssh")]
    #[command(version, args_override_self = true)]
    Ssh(Box<adit_ssh_commands::args::SshArgs>),
    /// Run an SSH server: only you can log in, with the keys of a file
    ///
    /// Offers programs, shells with terminals, files (sftp, scp) and forwarding to the user who
    /// started it, on a separate port; root is not needed. The host key is generated on the first
    /// start.
    #[cfg(all(unix, feature = "ssh"))]
    Sshd(adit_ssh_commands::args::SshdArgs),
    /// Work with the files of another machine, over SSH
    ///
    /// Reads commands as OpenSSH's `sftp` does; `help` lists them.
    /// Exit codes: 0 ok, 1 a command of a batch failed, 255 no connection.
    #[cfg(all(unix, feature = "ssh"))]
    Sftp(adit_ssh_commands::args::SftpArgs),
    /// Copy files to, from or between other machines, over SSH
    ///
    /// Exit codes: 0 ok, 1 a file was not copied, 255 no connection.
    #[cfg(all(unix, feature = "ssh"))]
    Scp(adit_ssh_commands::args::ScpArgs),
    /// Serve files over SFTP on standard input and output
    ///
    /// For an SSH server, with `Subsystem sftp /usr/bin/adit sftp-server` in its configuration.
    #[cfg(all(unix, feature = "ssh"))]
    #[command(hide = true)]
    SftpServer(adit_ssh_commands::args::SftpServerArgs),
    /// Shadowsocks and ShadowsocksR with the command lines of existing programs
    #[cfg(feature = "classic")]
    #[command(flatten)]
    Classic(classic::ClassicCommand),
    /// Install this program as ss-local, ss-server, ssr-local …: links in a folder
    ///
    /// Started under one of these names, it accepts the options of shadowsocks-libev and
    /// shadowsocksr-libev. An existing file of the same name that is not such a link is kept.
    #[cfg(feature = "classic")]
    InstallAliases(InstallAliasesArgs),
    /// Show help on a command, a scheme (ss, socks5, mixed …), on URLS, or on the configuration file:
    /// config, rules, groups, users
    Help(HelpArgs),
    /// Print shell completions
    #[cfg(feature = "manual")]
    Completion(CompletionArgs),
    /// Print possible continuations of a word, for the scripts of `adit completion`
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Print a manual page, or write all pages into a folder
    #[cfg(feature = "manual")]
    Man(ManArgs),
}

impl Command {
    /// Returns the options of the log, without the number of `-v`.
    pub(crate) fn log_options(&self) -> LogOptions<'_> {
        let typed = match self {
            #[cfg(feature = "ssh")]
            Self::Ssh(ssh) => {
                return LogOptions {
                    quiet: ssh.is_quiet(),
                    file: ssh.log_file(),
                    ..LogOptions::default()
                };
            }
            #[cfg(all(unix, feature = "ssh"))]
            Self::Sshd(sshd) => {
                return LogOptions {
                    file: sshd.log_file(),
                    ..LogOptions::default()
                };
            }
            Self::Up(up) => &up.log,
            Self::Server(server) => &server.log,
            Self::Client(client) => &client.log,
            Self::Run(run) => &run.log,
            #[cfg(feature = "admin")]
            Self::Manager(manager) => &manager.log,
            #[cfg(feature = "admin")]
            Self::Dashboard(dashboard) => &dashboard.log,
            Self::Doctor(doctor) => &doctor.log,
            _ => return LogOptions::default(),
        };
        LogOptions {
            modules: typed.modules.as_ref(),
            format: typed.format,
            ..LogOptions::default()
        }
    }

    /// Returns true if the command prints JSON, and its failure too.
    pub(crate) const fn is_json(&self) -> bool {
        let option = match self {
            Self::Up(typed) => &typed.json,
            Self::Server(typed) => &typed.json,
            Self::Client(typed) => &typed.json,
            Self::Run(typed) => &typed.json,
            #[cfg(feature = "admin")]
            Self::Status(typed) => &typed.json,
            #[cfg(feature = "admin")]
            Self::Sessions(typed) => &typed.json,
            #[cfg(feature = "admin")]
            Self::Routes(typed) => &typed.json,
            #[cfg(feature = "admin")]
            Self::User(typed) => typed.json(),
            #[cfg(feature = "admin")]
            Self::Upgrade(typed) => &typed.json,
            #[cfg(feature = "fleet")]
            Self::Fleet(typed) => return typed.is_json(),
            Self::Url(typed) | Self::Qr(typed) => &typed.json,
            Self::Keygen(typed) => &typed.json,
            Self::Check(typed) => &typed.json,
            Self::Explain(typed) => &typed.json,
            #[cfg(feature = "bench")]
            Self::Bench(typed) => return typed.what.is_json(),
            Self::Doctor(typed) => &typed.json,
            Self::Service(service::ServiceCommand::Status(typed)) => &typed.json,
            Self::SystemProxy(service::SystemProxyCommand::Status(typed)) => &typed.json,
            #[cfg(feature = "convert")]
            Self::Convert(typed) => &typed.json,
            _ => return false,
        };
        option.json
    }
}

// Options of the log, of commands that run for long.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LogArgs {
    /// Levels of the log by module: `debug`, or `info,adit_engine::udp=debug`; lines name the module then
    #[arg(id = "log_modules", long = "log", value_name = "FILTER", conflicts_with = "verbose",
          value_parser = ModuleFilter::parse)]
    pub(crate) modules: Option<ModuleFilter>,
    /// The format of lines in the log
    #[arg(id = "log_format", long = "log-format", value_name = "FORMAT", value_parser = log_format_parser())]
    pub(crate) format: Option<LogFormat>,
}

fn log_format_parser() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::names()).try_map(|name| {
        // Never fails: it is one of these names.
        LogFormat::from_name(&name).ok_or("unknown format")
    })
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Stop after the test request, instead of leaving the proxy running
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Print the URL with the stored key, and exit
    #[arg(value_name = "url", hide_possible_values = true)]
    pub(crate) ask: Option<ServerAction>,
    /// Address to listen on; a port alone is a port of all addresses
    #[arg(long, short, default_value = SERVER_LISTEN, value_name = "[HOST:]PORT")]
    pub(crate) listen: String,
    /// Host name or address for the printed URL, as clients reach this server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Method, instead of the fastest one; a stored key of another method is replaced
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Folder of the key, instead of your state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Private destinations that clients may reach: CIDRs or `all` [default: none]
    #[arg(long, value_name = "CIDR,…|all")]
    pub(crate) allow_private: Option<String>,
    /// Print the URL and the QR code even if standard output is not a terminal; a log would keep the key
    #[arg(long)]
    pub(crate) show_url: bool,
    /// Do not print the QR code
    #[arg(long)]
    pub(crate) no_qr: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// The default address that `adit server` listens on.
pub(crate) const SERVER_LISTEN: &str = "[::]:8388";

/// The words that `adit server` accepts instead of serving.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ServerAction {
    Url,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// The server's URL, as `adit server` printed it; the https URL of a subscription; the name of a stored profile, or
    /// of a file with servers; or `-`, which asks for the URL, or reads it from standard input
    #[arg(value_name = "URL|NAME|FILE|-", conflicts_with = "subscribe",
          required_unless_present_any = ["subscribe", "list"])]
    pub(crate) url: Option<String>,
    /// Store the URL under this name, readable by you only. From then on, `adit client NAME` uses it
    #[arg(long, value_name = "NAME", conflicts_with = "subscribe")]
    pub(crate) save: Option<String>,
    /// Print the names of the stored profiles and their servers, without secrets
    #[arg(long, conflicts_with_all = ["url", "save", "subscribe", "check"])]
    pub(crate) list: bool,
    /// Use the servers of a document at this https URL: SIP008, an `ssconf` key, `ss://` or `ssr://` links, Clash,
    /// sing-box or Xray. The same as the URL alone
    #[arg(long, hide = IS_UNMANAGED, value_name = "URL")]
    pub(crate) subscribe: Option<String>,
    /// The group or server of the document that requests use, instead of its first group
    #[arg(long, hide = IS_UNMANAGED, value_name = "NAME")]
    pub(crate) select: Option<String>,
    /// Interval at which the document is fetched again
    #[arg(long, hide = IS_UNMANAGED, default_value = "1h", value_name = "TIME", value_parser = adit_cli::parse_time)]
    pub(crate) refresh: Duration,
    /// A plugin that its servers may start; can be repeated
    #[arg(long, hide = IS_UNMANAGED, value_name = "NAME")]
    pub(crate) allow_plugin: Vec<String>,
    /// Folder of the profiles and of the last document, instead of your state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// A listener; can be repeated. A port alone is a mixed:// listener on 127.0.0.1
    #[arg(
        long,
        short,
        default_value = "mixed://127.0.0.1:1080",
        value_name = "URL|[HOST:]PORT"
    )]
    pub(crate) listen: Vec<String>,
    /// Only check that the server accepts this client, then exit
    #[arg(long)]
    pub(crate) check: bool,
    /// A web server to ask for the time if the server does not accept this client: directly, by HTTP. A
    /// wrong clock looks like a wrong key
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) clock: Option<Target>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// The first URL, or port, listens; the others are the hops, in the order in which they are passed
    #[arg(value_name = "URL", required_unless_present_any = ["config", "listen", "forward"])]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) ends: route_options::RouteOptions,
    #[cfg_attr(
        feature = "convert",
        doc = "A TOML file of routes, or another program's JSON or YAML (see `adit help convert`)"
    )]
    #[cfg_attr(not(feature = "convert"), doc = "A TOML file of routes")]
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["words", "listen", "forward"])]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
    /// Print the rule that decides about requests to this target, instead of the drawing; the port is 443 by
    /// default
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) target: Option<String>,
    /// Transport of the request, for rules that ask for it
    #[arg(
        long,
        value_enum,
        default_value = "tcp",
        value_name = "tcp|udp",
        requires = "target"
    )]
    pub(crate) network: NetworkKind,
    /// User of the request
    #[arg(long, value_name = "NAME", requires = "target")]
    pub(crate) user: Option<String>,
    /// Address of the client; default: 127.0.0.1
    #[arg(long, value_name = "ADDRESS", requires = "target")]
    pub(crate) source: Option<std::net::IpAddr>,
    /// Name in the first bytes of the client, for a target that is an address and listeners with `sniff=true`
    #[arg(long, value_name = "NAME", requires = "target")]
    pub(crate) sniffed: Option<String>,
}

/// The transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum NetworkKind {
    Tcp,
    Udp,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Serve the management API and /metrics on a Unix socket (on Windows a named pipe), or on a loopback
    /// port
    #[arg(long, hide = IS_UNMANAGED, value_name = "PATH|HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// A file of tokens for requests to the API, one per line; required for a port. `reveal` after a
    /// token lets it read keys
    #[arg(long, hide = IS_UNMANAGED, value_name = "@FILE")]
    pub(crate) admin_token: Option<String>,
    /// Name users in the metrics, with their usage
    #[arg(long, hide = IS_UNMANAGED)]
    pub(crate) metrics_users: bool,
    /// Export metrics and traces to this collector, over OTLP/HTTP: http://127.0.0.1:4318
    #[arg(long, hide = IS_WITHOUT_OTLP, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Host name or address of the servers for the subscriptions of their users
    #[arg(long, hide = IS_UNMANAGED, value_name = "HOST")]
    pub(crate) public_host: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UrlArgs {
    /// The link, in any form
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "classic")]
#[derive(Debug, clap::Args)]
pub(crate) struct InstallAliasesArgs {
    /// Folder of the links, such as /usr/local/bin
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeygenArgs {
    /// The method the key is for
    #[arg(default_value = "2022-blake3-aes-128-gcm")]
    pub(crate) method: String,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[cfg(feature = "convert")]
#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    /// The file to read; `-` is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The end that the configuration is for; by default it is guessed
    #[arg(long, value_enum, value_name = "END")]
    pub(crate) role: Option<ConvertRole>,
    /// Write to this new file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// A plugin that a subscription or a link may start; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_plugin: Vec<String>,
    /// The group or server of a subscription that requests use, instead of its first group
    #[arg(long, value_name = "NAME")]
    pub(crate) select: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// The ends of a tunnel.
#[cfg(feature = "convert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConvertRole {
    /// A local proxy that uses servers
    Client,
    /// A server
    Server,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// The server, or any other endpoint: every scheme of `adit help URLS`, a share link too
    pub(crate) url: String,
    /// A web server to send a HEAD request to through the server. It shows that the server carries
    /// traffic, and makes servers that are not adit answer
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: Option<Target>,
    /// A web server to ask for the time if the server does not understand this client: directly, by
    /// HTTP. A wrong clock looks like a wrong key
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) clock: Option<Target>,
    /// A DNS server to query through the server, by UDP
    #[arg(long, default_value = "1.1.1.1:53", value_name = "ADDR:PORT")]
    pub(crate) dns: Target,
    /// Maximum number of other settings to try if the server does not understand this client; 0 is none
    #[arg(long, default_value_t = 60, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=200))]
    pub(crate) tries: u16,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// A command, a scheme, URLS, config, rules, groups or users
    pub(crate) topic: Option<String>,
}

#[cfg(feature = "manual")]
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(feature = "manual")]
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// The shell whose script runs this
    #[arg(long)]
    pub(crate) shell: ScriptedShell,
    /// The position of the word to complete, counted from 0, which is the program
    #[arg(long, value_name = "N")]
    pub(crate) index: usize,
    /// The word is inside quotes: escape nothing
    #[arg(long)]
    pub(crate) raw: bool,
    /// The words of the line
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

/// The shells whose completion scripts run `adit complete`.
#[cfg(feature = "manual")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScriptedShell {
    Bash,
    Zsh,
    Fish,
}

#[cfg(feature = "manual")]
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The page: adit (the default), a command, adit.toml or adit-urls
    #[arg(conflicts_with = "dir")]
    pub(crate) page: Option<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
