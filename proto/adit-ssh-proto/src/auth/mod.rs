//! User authentication (RFC 4252, RFC 4256), client and server, as machines over payloads.
//!
//! Both work alike: [`ClientAuth::handle_input`] and [`ServerAuth::handle_input`] take a payload of
//! the peer and say what comes next; a question for the user, the agent, the files of keys or the
//! table of passwords is answered with `answer`, as late as the driver likes, and meanwhile no
//! payload is fed. What is to be sent waits in `poll_output`.
//!
//! The service request is part of it. The transport below has verified the host key before a
//! client's machine is made: nothing of the user's is sent to an unknown host.

mod client;
mod client_again;
mod client_input;
mod config;
mod message;
mod outgoing;
mod progress;
mod server;
mod server_input;
mod text;

pub use client::{ClientAnswer, ClientAsk, ClientAuth, ClientStep};
pub use config::{ClientConfig, Identity, ServerConfig};
pub use message::{Method, Prompt};
pub use outgoing::{HIDDEN_MULTIPLE, Outgoing};
pub use server::{Login, ServerAnswer, ServerAsk, ServerAuth, ServerStep};
pub use server_input::Tried;
pub use text::{password_eq, visible};

#[cfg(test)]
mod tests;
