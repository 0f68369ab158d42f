//! An SSH library with the API of the crate [russh](https://docs.rs/russh/0.65.1) 0.65.1, on adit's own
//! protocol implementation. A program that was written for russh compiles after you change the crate
//! name.
//!
//! ```no_run
//! use std::sync::Arc;
//! use adit_russh::{ChannelMsg, client, keys};
//!
//! struct Known;
//! impl client::Handler for Known {
//!     type Error = adit_russh::Error;
//!     async fn check_server_key(
//!         &mut self,
//!         key: &keys::PublicKeyOrCertificate,
//!     ) -> Result<bool, Self::Error> {
//!         Ok(keys::check_known_hosts("host.example", 22, &key.public_key())?)
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Arc::new(client::Config::default());
//! let mut session = client::connect(config, ("host.example", 22), Known).await?;
//! let key = Arc::new(keys::load_secret_key("id_ed25519", None)?);
//! let key = keys::PrivateKeyWithHashAlg::new(key, None);
//! assert!(session.authenticate_publickey("me", key).await?.success());
//! let mut channel = session.channel_open_session().await?;
//! channel.exec(true, "uname -a").await?;
//! while let Some(message) = channel.wait().await {
//!     if let ChannelMsg::Data { data } = message {
//!         print!("{}", String::from_utf8_lossy(&data));
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! # Crates that depend on russh
//!
//! Cargo can replace russh in your whole dependency graph, so that crates from the registry use this crate
//! unchanged:
//!
//! ```toml
//! [patch.crates-io]
//! russh = { path = "adit/compat/russh" }
//! russh-062 = { package = "russh", path = "adit/compat/russh-0.62" }
//! ```
//!
//! List only the lines for the versions that your graph contains: 0.65 for the first, 0.62 for the second. The
//! guide `docs/guides/ssh-russh.md` in the repository has the details, and what to change in a program.
//!
//! # What is supported
//!
//! * [`client`]: connections, authentication by keys, certificates, passwords and keyboard-interactive,
//!   sessions, direct and forwarded connections, and all of the handler's callbacks.
//! * [`server`]: listeners, all of the handler's callbacks, the session and its handle.
//! * [`Channel`] with its halves, streams and messages.
//! * [`keys`]: key files, public keys, certificates, known hosts. [`keys::ssh_key`] has the names of
//!   the crate `ssh-key`, which russh re-exports.
//! * [`keys::agent`]: connections to an agent, and every other [`Signer`], for
//!   [`client::Handle::authenticate_publickey_with`].
//! * [`Preferred`] with the names of all of adit's algorithms, including the four UMACs and NTRU Prime.
//!
//! # What is not supported
//!
//! An unsupported part of russh's API does not compile: nothing is there that has no effect.
//!
//! * Insecure algorithms: SHA-1 in signatures and key exchange, CBC, 3DES, DSA; `none` for ciphers and
//!   MACs.
//! * GSSAPI, Pageant, PuTTY key files, encrypted PKCS#8.
//! * Agents as servers; adding and removing an agent's keys, locking it, `AgentClient::into_inner`.
//! * Diffie–Hellman groups chosen by the handler (`lookup_dh_gex_group`, `Config::gex`), windows chosen
//!   by the handler (`adjust_window`), the shared secret (`kex_done`).
//! * Channels of unknown types, `session` channels that a server opens, global requests with
//!   application-defined names, and the answers to them (`request_success`).
//! * `SshId::Raw`, the type `CryptoVec`, WebAssembly.
//!
//! # Cancel safety
//!
//! The calls of handles and channels send a request to the session's task and wait for its answer. If such a call is
//! cancelled, the request may have been sent; its answer is discarded, and a channel that opens nevertheless is
//! closed. [`Channel::wait`] is cancel safe. Calls that send data are not: a part may have been sent. If
//! [`client::connect`] or a login is cancelled, drop the handle.
//!
//! # Differences
//!
//! * Strict key exchange and EXT_INFO are always offered, even if [`Preferred::kex`] does not name
//!   them.
//! * A channel holds back its own window, not the session: data for a [`Channel`] that is not read
//!   waits for its reader, within `window_size`, and other channels continue.
//! * Messages in a channel (exit status, EOF, close) are sent after the bytes that were sent before.
//! * Until the user is authenticated, a server's `inactivity_timeout` is the limit for the whole login,
//!   and `disconnect` ends the connection without a message.
//! * RSA keys sign with SHA-2 only.
//! * A user's certificate is checked (time, type, signature of the authority) before the server's
//!   handler is called, and is refused if it restricts its holder.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod channel;
mod channel_id;
pub mod client;
mod config_conversion;
mod disconnect;
mod error;
pub mod keys;
mod limits;
mod method;
mod names;
mod open_failure;
mod preferred;
mod pty;
pub mod server;
mod session_core;
mod sig;
mod signer;
mod ssh_id;

pub use channel::{Channel, ChannelMsg, ChannelReadHalf, ChannelStream, ChannelWriteHalf};
pub use channel_id::ChannelId;
pub use disconnect::Disconnect;
pub use error::{AlgorithmKind, Error, SendError};
pub use limits::Limits;
pub use method::{AuthResult, MethodKind, MethodSet};
pub use names::{cipher, compression, kex, mac};
pub use open_failure::ChannelOpenFailure;
pub use preferred::Preferred;
pub use pty::Pty;
pub use sig::Sig;
pub use signer::{AgentAuthError, Signer};
pub use ssh_id::SshId;
