//! Command-line arguments of `adit ssh`, `adit sftp` and `adit scp`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgAction;

// Arguments that choose how a host is reached; shared by `ssh`, `sftp` and `scp`.
#[derive(Debug, clap::Args)]
pub(crate) struct HostArgs {
    /// A private key to authenticate with; can be repeated
    #[arg(short, value_name = "FILE")]
    pub(crate) identity: Vec<String>,
    /// Connect through these jump hosts, separated by commas
    #[arg(short = 'J', value_name = "[USER@]HOST[:PORT],…")]
    pub(crate) jump: Option<String>,
    /// Set an option of ssh_config(5), such as `ConnectTimeout=10`; can be repeated
    #[arg(short, value_name = "KEY=VALUE")]
    pub(crate) option: Vec<String>,
    /// Read this file instead of ~/.ssh/config and the system's configuration; `none` reads no file
    #[arg(short = 'F', value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Ciphers, separated by commas; a leading `+`, `-` or `^` changes the default list
    #[arg(short, value_name = "CIPHER,…", allow_hyphen_values = true)]
    pub(crate) cipher: Option<String>,
    /// Compress the connection
    #[arg(short = 'C')]
    pub(crate) compress: bool,
    /// Use IPv4 only
    #[arg(short = '4', overrides_with = "v6")]
    pub(crate) v4: bool,
    /// Use IPv6 only
    #[arg(short = '6', overrides_with = "v4")]
    pub(crate) v6: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct SshArgs {
    /// The host, or its alias in the configuration; also `ssh://[user@]host[:port]`
    #[arg(value_name = "[USER@]HOST", required_unless_present = "query")]
    pub(crate) destination: Option<String>,
    /// The command to run on the host, instead of a shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) host_args: HostArgs,
    /// The port to connect to; if repeated, the first counts
    #[arg(short, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Vec<u16>,
    /// The user to log in as; if repeated, the first counts
    #[arg(short, value_name = "USER")]
    pub(crate) login: Vec<String>,
    /// MACs, separated by commas; a leading `+`, `-` or `^` changes the default list
    #[arg(short, value_name = "MAC,…", allow_hyphen_values = true)]
    pub(crate) mac: Option<String>,
    /// The local address to connect from
    #[arg(short, value_name = "ADDRESS")]
    pub(crate) bind: Option<String>,
    /// Forward a local port or socket to one that the host can reach: PORT:HOST:HOSTPORT
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub(crate) local: Vec<String>,
    /// Forward a port or socket of the host to one reachable from here; PORT alone serves SOCKS
    #[arg(short = 'R', value_name = "[BIND:]PORT[:HOST:HOSTPORT]")]
    pub(crate) remote: Vec<String>,
    /// Listen for SOCKS clients here; the host makes their connections
    #[arg(short = 'D', value_name = "[BIND:]PORT")]
    pub(crate) dynamic: Vec<String>,
    /// Let other machines connect to forwarded local ports
    #[arg(short)]
    pub(crate) gateway: bool,
    /// Connect standard input and output to HOST:PORT or a socket, through the host
    #[arg(short = 'W', value_name = "HOST:PORT", conflicts_with_all = ["command", "no_command"])]
    pub(crate) stdio: Option<String>,
    /// Run no command; only forward ports
    #[arg(short = 'N', conflicts_with = "command")]
    pub(crate) no_command: bool,
    /// Take the command as the name of a subsystem
    #[arg(short, requires = "command")]
    pub(crate) subsystem: bool,
    /// Do not read standard input
    #[arg(short)]
    pub(crate) null: bool,
    /// Go to the background after logging in, without standard input; needs a command or -N
    #[arg(short = 'f', conflicts_with = "stdio")]
    pub(crate) fork: bool,
    /// Request a terminal; if repeated, even without a local terminal
    #[arg(short, action = ArgAction::Count, conflicts_with = "no_terminal")]
    pub(crate) terminal: u8,
    /// Request no terminal
    #[arg(short = 'T')]
    pub(crate) no_terminal: bool,
    /// Let programs on the host use the local agent
    #[arg(short = 'A', overrides_with = "no_agent")]
    pub(crate) agent: bool,
    /// Do not forward the local agent
    #[arg(short = 'a', overrides_with = "agent")]
    pub(crate) no_agent: bool,
    /// The escape character at a terminal (`~?` lists the escapes); `none` disables escapes
    #[arg(short, value_name = "CHAR", allow_hyphen_values = true)]
    pub(crate) escape: Option<String>,
    /// Append the log and warnings to this file instead of standard error
    #[arg(short = 'E', value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ignored: IgnoredOptions,
    #[command(flatten)]
    pub(crate) unsupported: UnsupportedOptions,
}

// Options of OpenSSH that ask for what adit does anyway (no X11, no GSSAPI, version 2) and change nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct IgnoredOptions {
    #[arg(short = 'x', hide = true)]
    no_x11: bool,
    #[arg(short = 'k', hide = true)]
    no_gssapi_delegation: bool,
    #[arg(short = 'K', hide = true)]
    gssapi: bool,
    #[arg(short = '2', hide = true)]
    version_2: bool,
}

// Options of OpenSSH that are not supported. Each has its own message: reported as an unknown option it
// would look like a typing error.
#[derive(Debug, clap::Args)]
pub(crate) struct UnsupportedOptions {
    #[arg(short = 'M', hide = true, action = ArgAction::Count)]
    master: u8,
    #[arg(short = 'O', hide = true)]
    control: Option<OsString>,
    #[arg(short = 'S', hide = true)]
    control_path: Option<OsString>,
    #[arg(short = 'X', hide = true)]
    x11: bool,
    #[arg(short = 'Y', hide = true)]
    trusted_x11: bool,
    #[arg(short = 'G', hide = true)]
    print: bool,
    #[arg(short = 'Q', hide = true)]
    query: Option<OsString>,
    #[arg(short = 'w', hide = true)]
    tunnel: Option<OsString>,
    #[arg(short = 'I', hide = true)]
    token: Option<OsString>,
    #[arg(short = 'B', hide = true)]
    interface: Option<OsString>,
    #[arg(short = 'P', hide = true)]
    tag: Option<OsString>,
    #[arg(short = 'y', hide = true)]
    syslog: bool,
    #[arg(short = '1', hide = true)]
    version_1: bool,
}

impl SshArgs {
    /// Returns true if only errors are to be logged (`-q`).
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.host_args.quiet
    }

    /// Returns the file that the log goes to instead of standard error.
    #[must_use]
    pub fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

impl UnsupportedOptions {
    /// Returns the first unsupported option that was given, the reason, and an alternative (empty if none).
    pub(crate) fn first_used(&self) -> Option<(&'static str, &'static str, &'static str)> {
        const SHARING: &str = "connections are not shared between processes";
        const X11: &str = "X11 forwarding is not supported";
        let path = self.control_path.as_ref();
        [
            (self.master > 0, "-M", SHARING, ""),
            (self.control.is_some(), "-O", SHARING, ""),
            // `none` asks for no sharing, which is what adit does.
            (path.is_some_and(|path| path != "none"), "-S", SHARING, ""),
            (self.x11, "-X", X11, ""),
            (self.trusted_x11, "-Y", X11, ""),
            (
                self.print,
                "-G",
                "printing the configuration is not supported",
                "-v names the keywords that it ignores",
            ),
            (
                self.query.is_some(),
                "-Q",
                "listing algorithms is not supported",
                "`adit bench ssh HOST` lists those of a server, with their cost on this machine",
            ),
            (
                self.tunnel.is_some(),
                "-w",
                "tunnel devices are not supported",
                "",
            ),
            (
                self.token.is_some(),
                "-I",
                "PKCS#11 tokens are not supported",
                "load the keys into an agent: ssh-add -s LIBRARY",
            ),
            (
                self.interface.is_some(),
                "-B",
                "binding to an interface is not supported",
                "use -b ADDRESS",
            ),
            (
                self.tag.is_some(),
                "-P",
                "tags in the configuration are not supported",
                "use -p for the port",
            ),
            (
                self.syslog,
                "-y",
                "logging to syslog is not supported",
                "use -E FILE",
            ),
            (
                self.version_1,
                "-1",
                "version 1 of SSH is not supported",
                "",
            ),
        ]
        .into_iter()
        .find_map(|(typed, option, why, instead)| typed.then_some((option, why, instead)))
    }
}

#[derive(Debug, clap::Args)]
pub struct SftpArgs {
    /// The host, with a folder to start in or a file to fetch; also `sftp://[user@]host[:port][/path]`
    #[arg(value_name = "[USER@]HOST[:PATH]")]
    pub(crate) destination: OsString,
    #[command(flatten)]
    pub(crate) host_args: HostArgs,
    #[command(flatten)]
    pub(crate) copy_args: CopyArgs,
    /// Read commands from a file (`-` for standard input), and stop at the first that fails
    #[arg(short, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,
    /// Resume interrupted copies
    #[arg(short = 'a', long)]
    pub(crate) resume: bool,
}

#[derive(Debug, clap::Args)]
pub struct ScpArgs {
    /// Sources, then the target: a local PATH, `[USER@]HOST:PATH` or `scp://[USER@]HOST[:PORT]/PATH`
    #[arg(value_name = "SOURCE… TARGET", num_args = 2.., required = true)]
    pub(crate) places: Vec<OsString>,
    #[command(flatten)]
    pub(crate) host_args: HostArgs,
    #[command(flatten)]
    pub(crate) copy_args: CopyArgs,
    /// Resume interrupted copies, without sending again what is already there
    #[arg(long)]
    pub(crate) resume: bool,
    /// Copy between two remote machines through this one; this is always so
    #[arg(short = '3', hide = true)]
    pub(crate) through: bool,
}

// Arguments that choose how files are copied; shared by `sftp` and `scp`.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The port to connect to
    #[arg(short = 'P', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Copy folders recursively
    #[arg(short)]
    pub(crate) recursive: bool,
    /// Preserve times and all permissions
    #[arg(short)]
    pub(crate) preserve: bool,
    /// Maximum bandwidth, in Kbit/s
    #[arg(short, value_name = "KBIT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
}
