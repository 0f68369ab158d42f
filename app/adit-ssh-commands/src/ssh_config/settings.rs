//! The resolved settings.

use core::time::Duration;
use std::path::PathBuf;

use super::algorithms::AlgorithmList;
use super::forward::SshForward;
use super::jump::SshJump;
use super::pattern;
use adit_config::text::Warning;

/// Settings for reaching a host. Defaults are OpenSSH's, except for algorithms, which have defaults of their
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SshSettings {
    /// Host to connect to (`HostName`, or the host as typed).
    pub host_name: String,
    /// The host as typed.
    pub original_host: String,
    /// The port.
    pub port: u16,
    /// User to log in as.
    pub user: String,
    /// Address families to use.
    pub address_family: AddressFamily,
    /// Address to connect from.
    pub bind_address: Option<String>,
    /// Time limit for establishing a connection.
    pub connect_timeout: Option<Duration>,
    /// True if TCP keep-alive is on.
    pub tcp_keep_alive: bool,
    /// Jump hosts, in order.
    pub proxy_jump: Vec<SshJump>,
    /// Command that makes the connection. adit does not run it; it is kept so that the connection can be
    /// refused instead of bypassing the proxy.
    pub proxy_command: Option<String>,

    /// Private keys to offer; `None` if none is configured, so the default files are used.
    pub identity_files: Option<Vec<PathBuf>>,
    /// Certificates to offer.
    pub certificate_files: Vec<PathBuf>,
    /// True if only configured keys are offered.
    pub identities_only: bool,
    /// Agent to use.
    pub identity_agent: IdentityAgent,
    /// Agent that is forwarded to the server, if any.
    pub forward_agent: ForwardAgent,
    /// Authentication methods, in order of preference.
    pub preferred_authentications: Option<Vec<String>>,
    /// True if password authentication is allowed.
    pub password_authentication: bool,
    /// True if public-key authentication is allowed.
    pub pubkey_authentication: bool,
    /// True if keyboard-interactive authentication is allowed.
    pub keyboard_interactive: bool,
    /// True if the user cannot be asked anything.
    pub batch_mode: bool,
    /// Maximum number of password prompts.
    pub password_prompts: u32,

    /// The user's known hosts files.
    pub user_known_hosts: Vec<PathBuf>,
    /// The system's known hosts files.
    pub global_known_hosts: Vec<PathBuf>,
    /// Policy for unknown hosts.
    pub check_host_key: CheckHostKey,
    /// True if host names are hashed in the user's file.
    pub hash_known_hosts: bool,
    /// Policy for additional keys of a known host.
    pub update_host_keys: UpdateHostKeys,

    /// Ciphers, if configured.
    pub ciphers: Option<AlgorithmList>,
    /// MACs, if configured.
    pub macs: Option<AlgorithmList>,
    /// Key exchange methods, if configured.
    pub kex: Option<AlgorithmList>,
    /// Host key algorithms, if configured.
    pub host_key_algorithms: Option<AlgorithmList>,
    /// True if compression is requested.
    pub compression: bool,
    /// Limits after which keys are exchanged again.
    pub rekey_limit: RekeyLimit,
    /// Silence after which the server is probed; zero disables probes.
    pub server_alive_interval: Duration,
    /// Number of unanswered probes after which the connection is closed.
    pub server_alive_count: u32,

    /// Forwards that listen locally.
    pub local_forwards: Vec<SshForward>,
    /// Forwards that listen on the server.
    pub remote_forwards: Vec<SshForward>,
    /// Local SOCKS servers.
    pub dynamic_forwards: Vec<SshForward>,
    /// True if other machines may use the forwards.
    pub gateway_ports: bool,
    /// True if a forward that cannot be set up ends the program.
    pub exit_on_forward_failure: bool,

    /// Policy for requesting a terminal.
    pub request_tty: RequestTty,
    /// Command to run instead of a shell.
    pub remote_command: Option<String>,
    /// Patterns of the environment variables to send.
    pub send_env: Vec<String>,
    /// Additional variables to send, with their values.
    pub set_env: Vec<(String, String)>,
    /// Character that starts an escape, if any.
    pub escape_char: Option<char>,
    /// Verbosity of the log.
    pub log_level: SshLogLevel,

    /// Settings that were skipped.
    pub warnings: Vec<Warning>,
}

impl SshSettings {
    /// Returns true if `SendEnv` matches this variable.
    #[must_use]
    pub fn sends_variable(&self, name: &str) -> bool {
        self.send_env
            .iter()
            .any(|one| pattern::matches_pattern(one, name))
    }
}

/// `AddressFamily`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressFamily {
    /// Both families.
    #[default]
    Any,
    /// IPv4 only.
    Inet,
    /// IPv6 only.
    Inet6,
}

/// `StrictHostKeyChecking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckHostKey {
    /// Unknown hosts are refused.
    Strict,
    /// The user is asked about unknown hosts.
    #[default]
    Ask,
    /// New hosts are added; a host whose key has changed is refused.
    AcceptNew,
    /// Every host is accepted.
    Off,
}

/// `UpdateHostKeys`: policy for the keys that a host announces after login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpdateHostKeys {
    /// Announced keys are ignored.
    No,
    /// New keys are added, and keys that the host no longer has are removed. The default if the user has not
    /// configured known hosts files.
    #[default]
    Yes,
    /// Like [`Self::Yes`], after the user agrees; like [`Self::No`] with `RemoteCommand`.
    Ask,
}

/// `IdentityAgent`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IdentityAgent {
    /// The agent named by the variable `SSH_AUTH_SOCK`.
    #[default]
    Default,
    /// The agent named by this variable.
    Variable(String),
    /// The agent at this socket.
    Socket(PathBuf),
    /// No agent.
    None,
}

/// `ForwardAgent`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForwardAgent {
    /// No agent is forwarded.
    #[default]
    No,
    /// The agent that is used locally.
    Yes,
    /// The agent named by this variable.
    Variable(String),
    /// The agent at this socket.
    Socket(PathBuf),
}

/// `RequestTTY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestTty {
    /// For a shell, if there is a local terminal.
    #[default]
    Auto,
    /// If there is a local terminal.
    Yes,
    /// Never.
    No,
    /// Always.
    Force,
}

/// `RekeyLimit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RekeyLimit {
    /// Number of bytes after which keys are exchanged; `None` leaves it to the cipher.
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
