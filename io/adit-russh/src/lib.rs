//! SSH in the shape of the crate [russh](https://docs.rs/russh/0.65.1) 0.65.1, on adit's own
//! protocol: a program that was written for russh compiles with only the crate's name changed.
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
//! # What is here
//!
//! * [`client`]: connections, all ways to log in with keys, certificates, passwords and questions,
//!   sessions, direct and forwarded connections, the handler with all that it is told.
//! * [`server`]: listeners, the handler with all that it is asked, the session and its handle.
//! * [`Channel`] with its halves, streams and messages.
//! * [`keys`]: key files, public keys, certificates, known hosts; of the crate `ssh-key`, which russh
//!   re-exports, the names in [`keys::ssh_key`].
//! * [`Preferred`] with the names of all algorithms that adit has, the four UMACs and NTRU Prime
//!   among them.
//!
//! # What is not
//!
//! What russh has and this has not does not compile; nothing is there that does nothing.
//!
//! * Algorithms that are not safe any more: SHA-1 in signatures and key exchange, CBC, 3DES, DSA;
//!   nor `none` for ciphers and MACs.
//! * GSSAPI, agents as signers (`keys::agent`, `authenticate_publickey_with`) and Pageant, Putty's
//!   key files, encrypted PKCS#8.
//! * A group for Diffie–Hellman of the handler's choice (`lookup_dh_gex_group`, `Config::gex`),
//!   windows of the handler's choice (`adjust_window`), the shared secret (`kex_done`).
//! * Channels of a kind that nobody knows, `session` channels that a server opens, requests outside
//!   of channels with names of one's own, and the answers to them (`request_success`).
//! * `SshId::Raw`, the type `CryptoVec`, WebAssembly.
//!
//! # What differs
//!
//! * Strict key exchange and EXT_INFO are always offered, whether [`Preferred::kex`] names them or
//!   not.
//! * A channel holds back its own window, not the session: what is sent to a [`Channel`] that
//!   nobody reads waits for it, within `window_size`, and other channels go on.
//! * What is told or ended in a channel (exit status, end, close) stands behind the bytes that were
//!   sent before.
//! * Until the user is in, a server's `inactivity_timeout` counts in all, and `disconnect` ends the
//!   connection without words.
//! * RSA keys sign with SHA-2 alone.
//! * A certificate with which a user logs in is checked (time, kind, signature of the authority)
//!   before the server's handler is asked, and refused if it restricts its holder.

mod channel;
mod channel_id;
pub mod client;
mod core;
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
mod settings;
mod sig;
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
pub use ssh_id::SshId;
