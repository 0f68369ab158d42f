//! [`adit_russh`] with the clients' API of russh 0.62, for `[patch.crates-io]`.
//!
//! In 0.62, a client's `check_server_key` receives a [`PublicKey`](keys::PublicKey). The rest is
//! adit-russh's own, including its servers: their `auth_publickey` and `auth_publickey_offered` have the
//! arguments of russh 0.65.

pub mod client;

pub use adit_russh::*;
