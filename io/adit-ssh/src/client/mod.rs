//! The client side: logs in and opens channels.

mod agent;
mod binding;
mod config;
mod connect;
mod entrance;
mod forwarded;
mod host_key;
mod host_keys;
mod known_hosts;
mod login;
mod own;
mod program;
mod session;

pub use agent::{Agent, AgentError, AgentKey};
pub use binding::{AgentUse, SessionBinding};
pub use config::ClientConfig;
pub use connect::Client;
pub use entrance::{Entrance, Tried};
pub use forwarded::{Arrivals, Forwarded};
pub use host_key::{HostKey, HostKeyFn, HostKeyPolicy, KnownHostsOnly, PinnedKeys};
pub use host_keys::{ProofError, ToldKeys};
pub use known_hosts::{KnownHost, KnownHostsError, KnownHostsFiles};
pub use login::{Identity, LocalKey, Login, Password, Prompter};
pub use own::{OwnChannels, OwnRequests};
pub use program::{Exit, Output, Program, ProgramControl};
pub use session::Session;
