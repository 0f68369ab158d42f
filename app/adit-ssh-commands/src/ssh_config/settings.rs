//! What comes out.

use core::time::Duration;
use std::path::PathBuf;

use super::algorithms::AlgorithmList;
use super::forward::SshForward;
use super::jump::SshJump;
use super::pattern;
use adit_config::text::Warning;

/// How a host is reached. Defaults are those of OpenSSH, but for algorithms, which have their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SshSettings {
    /// The host to connect to (`HostName`, or what was typed).
    pub host_name: String,
    /// The host as it was typed.
    pub original_host: String,
    /// The port.
    pub port: u16,
    /// The user to log in as.
    pub user: String,
    /// The kinds of addresses to use.
    pub address_family: AddressFamily,
    /// The address to connect from.
    pub bind_address: Option<String>,
    /// How long a connection may take to be made.
    pub connect_timeout: Option<Duration>,
    /// Keep-alive of TCP.
    pub tcp_keep_alive: bool,
    /// The hosts on the way.
    pub proxy_jump: Vec<SshJump>,
    /// A command that makes the connection. It is told so that it can be refused: what follows it
    /// must not go the direct way.
    pub proxy_command: Option<String>,

    /// Private keys to offer; `None` if none is named, so that the usual files are meant.
    pub identity_files: Option<Vec<PathBuf>>,
    /// Certificates to offer.
    pub certificate_files: Vec<PathBuf>,
    /// No key is offered but those that are named.
    pub identities_only: bool,
    /// The agent to ask.
    pub identity_agent: IdentityAgent,
    /// Whether, and which, agent the server may ask.
    pub forward_agent: ForwardAgent,
    /// Methods of authentication in their order.
    pub preferred_authentications: Option<Vec<String>>,
    /// Passwords may be asked for.
    pub password_authentication: bool,
    /// Keys may be used.
    pub pubkey_authentication: bool,
    /// Questions of the server may be answered.
    pub keyboard_interactive: bool,
    /// Nobody is there to be asked.
    pub batch_mode: bool,
    /// How often a password is asked for.
    pub password_prompts: u32,

    /// Files with the keys of hosts, the user's.
    pub user_known_hosts: Vec<PathBuf>,
    /// Files with the keys of hosts, the system's.
    pub global_known_hosts: Vec<PathBuf>,
    /// What happens with a host that is not known.
    pub check_host_key: CheckHostKey,
    /// Names are hashed in the user's file.
    pub hash_known_hosts: bool,
    /// What happens with further keys of a host that is known.
    pub update_host_keys: UpdateHostKeys,

    /// Ciphers.
    pub ciphers: Option<AlgorithmList>,
    /// MACs.
    pub macs: Option<AlgorithmList>,
    /// Key exchange.
    pub kex: Option<AlgorithmList>,
    /// Host keys.
    pub host_key_algorithms: Option<AlgorithmList>,
    /// Compression.
    pub compression: bool,
    /// When keys are exchanged anew.
    pub rekey_limit: RekeyLimit,
    /// Silence after which the server is asked for a sign of life; zero: never.
    pub server_alive_interval: Duration,
    /// Such questions without an answer, after which it is given up.
    pub server_alive_count: u32,

    /// Forwards from here.
    pub local_forwards: Vec<SshForward>,
    /// Forwards from the server.
    pub remote_forwards: Vec<SshForward>,
    /// SOCKS servers here.
    pub dynamic_forwards: Vec<SshForward>,
    /// Other machines may use the forwards.
    pub gateway_ports: bool,
    /// A forward that cannot be made is the end.
    pub exit_on_forward_failure: bool,

    /// Whether a terminal is asked for.
    pub request_tty: RequestTty,
    /// The command to run instead of a shell.
    pub remote_command: Option<String>,
    /// Patterns of the variables of the environment that are sent.
    pub send_env: Vec<String>,
    /// Variables that are sent, with their values.
    pub set_env: Vec<(String, String)>,
    /// The character that begins an escape; `None` for none.
    pub escape_char: Option<char>,
    /// How much is told.
    pub log_level: SshLogLevel,

    /// What was left out.
    pub warnings: Vec<Warning>,
}

impl SshSettings {
    /// Whether `SendEnv` names this variable.
    #[must_use]
    pub fn sends(&self, name: &str) -> bool {
        self.send_env.iter().any(|one| pattern::matches(one, name))
    }
}

/// `AddressFamily`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressFamily {
    /// Both.
    #[default]
    Any,
    /// IPv4.
    Inet,
    /// IPv6.
    Inet6,
}

/// `StrictHostKeyChecking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckHostKey {
    /// A host that is not known is refused.
    Strict,
    /// The user is asked.
    #[default]
    Ask,
    /// A new host is learned; one whose key changed is refused.
    AcceptNew,
    /// Everything is accepted.
    Off,
}

/// `UpdateHostKeys`: keys that a host tells once one is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpdateHostKeys {
    /// They are not looked at.
    No,
    /// New ones are learned, those that the host has no more are forgotten. The default where the
    /// user has not named files of known hosts.
    #[default]
    Yes,
    /// The same, if the user says so; nothing with `RemoteCommand`.
    Ask,
}

/// `IdentityAgent`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IdentityAgent {
    /// The one that the variable `SSH_AUTH_SOCK` names.
    #[default]
    Usual,
    /// The one that this variable names.
    Variable(String),
    /// The one at this socket.
    Socket(PathBuf),
    /// None.
    None,
}

/// `ForwardAgent`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForwardAgent {
    /// No.
    #[default]
    No,
    /// The agent that is used here.
    Yes,
    /// The one that this variable names.
    Variable(String),
    /// The one at this socket.
    Socket(PathBuf),
}

/// `RequestTTY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestTty {
    /// For a shell, if there is a terminal here.
    #[default]
    Auto,
    /// If there is a terminal here.
    Yes,
    /// Never.
    No,
    /// Always.
    Force,
}

/// `RekeyLimit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RekeyLimit {
    /// Octets after which keys are exchanged; `None` leaves it to the cipher.
    pub bytes: Option<u64>,
    /// Time after which keys are exchanged.
    pub time: Option<Duration>,
}

/// `LogLevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[allow(missing_docs, reason = "the names are those of the manual")]
pub enum SshLogLevel {
    Quiet,
    Fatal,
    Error,
    #[default]
    Info,
    Verbose,
    Debug1,
    Debug2,
    Debug3,
}
