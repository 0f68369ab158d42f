//! User authentication (RFC 4252, RFC 4256): client and server as state machines over payloads.
//!
//! Both work in the same way. [`ClientAuth::handle_input`] and [`ServerAuth::handle_input`] take a
//! payload from the peer and return the next step. You answer a question for the user, the agent,
//! the key files or the password table with `answer`, at any later time; feed no payload until
//! then. `poll_output` returns the payloads to send.
//!
//! The service request is included. The transport below has verified the host key before a client's
//! state machine is created, so no user data is sent to an unknown host.

mod client;
mod client_input;
mod client_retry;
mod config;
mod display_text;
mod message;
mod outgoing;
mod progress;
mod server;
mod server_input;

pub use client::{ClientAnswer, ClientAuth, ClientAuthQuery, ClientStep};
pub use config::{ClientAuthConfig, ClientIdentity, DEFAULT_TRIES, ServerAuthConfig};
pub use display_text::{passwords_equal, sanitize_for_display};
pub use message::{AuthMethod, InteractivePrompt};
pub use outgoing::{AuthPayload, HIDDEN_MULTIPLE};
pub use server::{AuthenticatedUser, ServerAnswer, ServerAuth, ServerAuthQuery, ServerStep};
pub use server_input::AttemptedLogin;

#[cfg(test)]
mod tests;
