//! The obfuscation layer of ShadowsocksR and GoQuiet, sans-IO.
//!
//! Strength: a censor that only compares the first packets with known protocols sees a web request
//! or a TLS session instead of random bytes. Limits: nothing here encrypts or authenticates data,
//! and a closer look (at timing, at the missing certificate, or by connecting to the server)
//! distinguishes it from the real protocol.
//!
//! The layer is directly above TCP, below the stream cipher:
//!
//! ```text
//! application ─ protocol ─ stream cipher ─ obfs ─ TCP
//! ```
//!
//! Start with [`ClientState`] (one per server, for the lifetime of the process) or [`ServerState`]
//! (one per listener). Each connection runs a [`ClientHandshake`] or a [`ServerHandshake`] and then
//! has a pair of [`Codecs`], which work in place: bytes are passed unchanged, or in TLS
//! application-data records of up to 16 KiB. A first flight that can be sent with the first data
//! (an HTTP head, the end of a TLS handshake) is part of [`ObfsSeal`]'s first record.
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
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod client;
mod http;
mod obfs_kind;
mod obfs_param;
mod open;
mod quiet;
mod random_head;
mod redirect;
mod seal;
mod seen_hellos;
mod server;
mod tls;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use client::{ClientHandshake, ClientSettings, ClientState};
pub use obfs_kind::{ObfsKind, UnknownObfs, UnrecognizedPolicy};
pub use obfs_param::{ObfsParam, ParamError};
pub use open::ObfsOpen;
pub use quiet::Browser;
pub use redirect::{RedirectError, RedirectRule};
pub use seal::ObfsSeal;
pub use server::{HelloRestoreError, ServerHandshake, ServerSettings, ServerState};

/// The codecs of a connection whose handshake is done.
#[derive(Debug)]
pub struct Codecs {
    /// Seals the data that this side sends.
    pub seal: ObfsSeal,
    /// Opens the data that this side receives.
    pub open: ObfsOpen,
}

impl Codecs {
    /// Creates codecs that change nothing in either direction.
    pub(crate) const fn new_raw() -> Self {
        Self {
            seal: ObfsSeal::new_raw(),
            open: ObfsOpen::new_raw(),
        }
    }

    /// Processes several frames at a time, for a layer above that can handle them, with the same
    /// bytes on the wire: up to 64 KiB are sealed as one payload, in several records, and the data
    /// of all available records is opened as one. This moves the data by a few bytes, a cost that
    /// the layer above must outweigh.
    #[must_use]
    pub fn with_joined_records(self) -> Self {
        Self {
            seal: self.seal.with_joined_records(),
            open: self.open.with_joined_records(),
        }
    }
}
