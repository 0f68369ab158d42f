//! What may be typed for the commands of SSH.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgAction;

/// How a host is reached: what `ssh`, `sftp` and `scp` have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct Way {
    /// A private key to log in with; can be repeated
    #[arg(short, value_name = "FILE")]
    pub(crate) identity: Vec<String>,
    /// Hosts on the way, with commas
    #[arg(short = 'J', value_name = "[USER@]HOST[:PORT],…")]
    pub(crate) jump: Option<String>,
    /// An option of ssh_config(5), such as `ConnectTimeout=10`; can be repeated
    #[arg(short, value_name = "KEY=VALUE")]
    pub(crate) option: Vec<String>,
    /// Read this configuration instead of ~/.ssh/config and the system's; `none` for no file
    #[arg(short = 'F', value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Ciphers, with commas; `+`, `-` or `^` in front changes the default list
    #[arg(short, value_name = "CIPHER,…", allow_hyphen_values = true)]
    pub(crate) cipher: Option<String>,
    /// Compress
    #[arg(short = 'C')]
    pub(crate) compress: bool,
    /// IPv4 only
    #[arg(short = '4', overrides_with = "v6")]
    pub(crate) v4: bool,
    /// IPv6 only
    #[arg(short = '6', overrides_with = "v4")]
    pub(crate) v6: bool,
    /// Say nothing but what went wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub struct Ssh {
    /// The host, or its name in the configuration; `ssh://[user@]host[:port]` too
    #[arg(value_name = "[USER@]HOST", required_unless_present = "query")]
    pub(crate) destination: Option<String>,
    /// What to run there, instead of a shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) way: Way,
    /// The port; the first counts
    #[arg(short, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Vec<u16>,
    /// The user to log in as; the first counts
    #[arg(short, value_name = "USER")]
    pub(crate) login: Vec<String>,
    /// MACs, with commas; `+`, `-` or `^` in front changes the default list
    #[arg(short, value_name = "MAC,…", allow_hyphen_values = true)]
    pub(crate) mac: Option<String>,
    /// The address to connect from
    #[arg(short, value_name = "ADDRESS")]
    pub(crate) bind: Option<String>,
    /// Forward a port or a socket here to one that the host reaches: PORT:HOST:HOSTPORT
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub(crate) local: Vec<String>,
    /// Forward a port or a socket of the host to one that is reached from here; PORT alone: SOCKS
    #[arg(short = 'R', value_name = "[BIND:]PORT[:HOST:HOSTPORT]")]
    pub(crate) remote: Vec<String>,
    /// Serve SOCKS here; connections go out at the host
    #[arg(short = 'D', value_name = "[BIND:]PORT")]
    pub(crate) dynamic: Vec<String>,
    /// Other machines may use what is listened on here
    #[arg(short)]
    pub(crate) gateway: bool,
    /// Connect standard input and output to HOST:PORT, or to a socket, as the host reaches it
    #[arg(short = 'W', value_name = "HOST:PORT", conflicts_with_all = ["command", "no_command"])]
    pub(crate) stdio: Option<String>,
    /// Run nothing: forwards alone
    #[arg(short = 'N', conflicts_with = "command")]
    pub(crate) no_command: bool,
    /// The command is the name of a subsystem
    #[arg(short, requires = "command")]
    pub(crate) subsystem: bool,
    /// No standard input
    #[arg(short)]
    pub(crate) null: bool,
    /// Go into the background once logged in, without standard input; wants a command or -N
    #[arg(short = 'f', conflicts_with = "stdio")]
    pub(crate) fork: bool,
    /// Ask for a terminal; twice: even if there is none here
    #[arg(short, action = ArgAction::Count, conflicts_with = "no_terminal")]
    pub(crate) terminal: u8,
    /// Ask for no terminal
    #[arg(short = 'T')]
    pub(crate) no_terminal: bool,
    /// Let programs there use the agent here
    #[arg(short = 'A', overrides_with = "no_agent")]
    pub(crate) agent: bool,
    /// Let nobody use the agent here
    #[arg(short = 'a', overrides_with = "agent")]
    pub(crate) no_agent: bool,
    /// The character that begins an escape at a terminal (`~?` tells which there are); `none`
    #[arg(short, value_name = "CHAR", allow_hyphen_values = true)]
    pub(crate) escape: Option<String>,
    /// Append the log and warnings to a file, instead of standard error
    #[arg(short = 'E', value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) granted: Granted,
    #[command(flatten)]
    pub(crate) refused: Refused,
}

/// What OpenSSH's clients pass, or habit types, and what is so anyway: no X11, no GSSAPI, version 2.
#[derive(Debug, clap::Args)]
pub(crate) struct Granted {
    #[arg(short = 'x', hide = true)]
    no_x11: bool,
    #[arg(short = 'k', hide = true)]
    no_gssapi_delegation: bool,
    #[arg(short = 'K', hide = true)]
    gssapi: bool,
    #[arg(short = '2', hide = true)]
    version_2: bool,
}

/// Options of OpenSSH that are not here. Each has its own message: as an unknown letter it would
/// look like a typing error.
#[derive(Debug, clap::Args)]
pub(crate) struct Refused {
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

impl Ssh {
    /// Whether the log is to be silent.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.way.quiet
    }

    /// The file that the log goes to, instead of standard error.
    #[must_use]
    pub fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

impl Refused {
    /// The option that was typed, why it is not there, and what does the same.
    pub(crate) fn first(&self) -> Option<(&'static str, &'static str, &'static str)> {
        const SHARING: &str = "connections are not shared between processes";
        const X11: &str = "X11 is not forwarded";
        let path = self.control_path.as_ref();
        [
            (self.master > 0, "-M", SHARING, ""),
            (self.control.is_some(), "-O", SHARING, ""),
            // `none` asks for no sharing, which is what there is.
            (path.is_some_and(|path| path != "none"), "-S", SHARING, ""),
            (self.x11, "-X", X11, ""),
            (self.trusted_x11, "-Y", X11, ""),
            (
                self.print,
                "-G",
                "the configuration is not printed",
                "-v names what it passes over",
            ),
            (
                self.query.is_some(),
                "-Q",
                "algorithms are not listed",
                "`adit bench ssh HOST` shows those of a server, with their costs here",
            ),
            (self.tunnel.is_some(), "-w", "there is no tunnel device", ""),
            (
                self.token.is_some(),
                "-I",
                "keys in a token are not read",
                "an agent can hold them: ssh-add -s LIBRARY",
            ),
            (
                self.interface.is_some(),
                "-B",
                "no interface can be named",
                "-b ADDRESS",
            ),
            (
                self.tag.is_some(),
                "-P",
                "the configuration has no tags",
                "-p is the port",
            ),
            (
                self.syslog,
                "-y",
                "nothing is logged to the system",
                "-E FILE",
            ),
            (self.version_1, "-1", "version 1 of SSH is not spoken", ""),
        ]
        .into_iter()
        .find_map(|(typed, option, why, instead)| typed.then_some((option, why, instead)))
    }
}

#[derive(Debug, clap::Args)]
pub struct Sftp {
    /// The host, and a folder to begin in or a file to fetch; `sftp://[user@]host[:port][/path]` too
    #[arg(value_name = "[USER@]HOST[:PATH]")]
    pub(crate) destination: OsString,
    #[command(flatten)]
    pub(crate) way: Way,
    #[command(flatten)]
    pub(crate) how: Copying,
    /// Read commands from a file, `-` for standard input, and end at the first that fails
    #[arg(short, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,
    /// Go on with copies that were cut
    #[arg(short = 'a', long)]
    pub(crate) resume: bool,
}

#[derive(Debug, clap::Args)]
pub struct Scp {
    /// Files, then where to: PATH here, `[USER@]HOST:PATH` or `scp://[USER@]HOST[:PORT]/PATH` there
    #[arg(value_name = "SOURCE… TARGET", num_args = 2.., required = true)]
    pub(crate) places: Vec<OsString>,
    #[command(flatten)]
    pub(crate) way: Way,
    #[command(flatten)]
    pub(crate) how: Copying,
    /// Go on with copies that were cut: what is there already is not sent again
    #[arg(long)]
    pub(crate) resume: bool,
    /// Between two other machines through this one, which is the only way there is
    #[arg(short = '3', hide = true)]
    pub(crate) through: bool,
}

/// How files are copied: what `sftp` and `scp` have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct Copying {
    /// The port
    #[arg(short = 'P', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Folders, with what is in them
    #[arg(short)]
    pub(crate) recursive: bool,
    /// Keep times and all permissions
    #[arg(short)]
    pub(crate) preserve: bool,
    /// Kbit in a second at most
    #[arg(short, value_name = "KBIT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
}
