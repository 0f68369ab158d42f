//! The client side: logs in and opens channels.

mod agent;
#[cfg(any(unix, windows))]
mod agent_socket;
mod config;
mod connect;
mod custom;
mod host_key_announcements;
mod host_key_policy;
mod known_hosts;
mod login;
mod pending_login;
mod program;
mod remote_forward;
mod session;
mod session_binding;

pub use agent::{Agent, AgentError, AgentKey};
pub use config::ClientConfig;
pub use connect::Client;
pub use custom::{CustomChannels, CustomRequests};
pub use host_key_announcements::{HostKeyAnnouncements, HostKeyProofError};
pub use host_key_policy::{HostKey, HostKeyFn, HostKeyPolicy, KnownHostsOnly, PinnedKeys};
pub use known_hosts::{KnownHost, KnownHostsError, KnownHostsFiles};
pub use login::{FixedPassword, Identity, LocalKey, Login, Prompter};
pub use pending_login::{LoginOutcome, PendingLogin};
pub use program::{Exit, Output, Program, ProgramControl};
pub use remote_forward::{IncomingChannels, RemoteForward};
pub use session::Session;
pub use session_binding::{AgentPurpose, SessionBinding};
