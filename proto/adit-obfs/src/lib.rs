//! The obfuscation layer of ShadowsocksR and of GoQuiet, sans-IO.
//!
//! What it is worth: a censor that only compares the first packets with lists of known protocols
//! sees a web request or a TLS session where there would be random bytes. What it is not worth:
//! nothing here encrypts or authenticates data, and whoever looks twice (at timing, at the missing
//! certificate, at the peer by connecting to it) can tell it from the real thing.
//!
//! The layer lies directly on TCP, below the stream cipher:
//!
//! ```text
//! application ─ protocol ─ stream cipher ─ obfs ─ TCP
//! ```
//!
//! Start with [`ClientState`] (one for each server, for the life of the process) or
//! [`ServerState`] (one for each listener). Each connection runs a [`ClientHandshake`] or a
//! [`ServerHandshake`] to its end and then has a pair of [`Codecs`], which work in place: bytes
//! pass as they are, or in TLS application-data records of up to 16 KiB. A first flight that may
//! ride with the first data (an HTTP head, the end of a TLS handshake) is part of
//! [`ObfsSeal`]'s first record.
//!
//! | name | client sends | server answers | data |
//! |---|---|---|---|
//! | `plain` | | | raw |
//! | `http_simple`, `http_post` | a request with the first bytes in its URL | a response head | raw |
//! | `random_head` | random bytes with a CRC | random bytes | raw |
//! | `tls1.2_ticket_auth` | ClientHello; when answered, Finished | ServerHello to Finished | records |
//! | `tls1.2_ticket_fastauth` | ClientHello, Finished | ServerHello to Finished | records |
//! | `go_quiet` | a browser's ClientHello; when answered, Finished | ServerHello to Finished | records |
//!
//! # Examples
//!
//! ```
//! use adit_obfs::{ObfsKind, ObfsParam};
//!
//! let kind: ObfsKind = "tls1.2_ticket_auth".parse().unwrap();
//! let param = ObfsParam::parse("cdn.example.test,www.example.test")?;
//! assert_eq!(kind.to_string(), "tls1.2_ticket_auth");
//! assert_eq!(param.hosts().len(), 2);
//! # Ok::<(), adit_obfs::ParamError>(())
//! ```

#![forbid(unsafe_code)]

mod client;
mod http;
mod kind;
mod open;
mod param;
mod quiet;
mod random_head;
mod redirect;
mod seal;
mod seen;
mod server;
mod tls;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use client::{ClientHandshake, ClientSettings, ClientState};
pub use kind::{ObfsKind, Strangers, UnknownObfs};
pub use open::ObfsOpen;
pub use param::{ObfsParam, ParamError};
pub use quiet::Browser;
pub use redirect::{Redirect, RedirectError};
pub use seal::ObfsSeal;
pub use server::{ServerHandshake, ServerSettings, ServerState};

/// What a connection speaks once its handshake is done.
#[derive(Debug)]
pub struct Codecs {
    /// Seals what this side sends.
    pub seal: ObfsSeal,
    /// Opens what this side receives.
    pub open: ObfsOpen,
}

impl Codecs {
    /// No change in either direction.
    pub(crate) const fn raw() -> Self {
        Self {
            seal: ObfsSeal::raw(),
            open: ObfsOpen::raw(),
        }
    }

    /// The same bytes on the wire for a layer above that handles several frames at a time: up to
    /// 64 KiB are sealed as one payload, in several records, and the data of all records at hand is
    /// opened as one. The data is moved by a few bytes for that, which a layer above has to be worth.
    #[must_use]
    pub fn joined(self) -> Self {
        Self {
            seal: self.seal.joined(),
            open: self.open.joined(),
        }
    }
}
