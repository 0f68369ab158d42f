//! Keys: signing and trust.
//!
//! * [`PublicKey`] and [`PrivateKey`] with their blobs, text forms and files; [`Certificate`]
//!   (OpenSSH's `PROTOCOL.certkeys`); [`Signer`], which local keys and key sets implement;
//! * [`KnownHosts`], the hosts that a client trusts, and [`AuthorizedKeys`], the keys that a server
//!   accepts, with the [`Grant`] of a user's permissions;
//! * [`agent`], the messages of an agent that stores the private keys.
//!
//! This module opens no file and no socket: files are passed as text, and time is an argument.

pub mod agent;
mod any;
mod authorized;
mod base64;
mod certificate;
mod der;
mod error;
mod file;
mod grant;
mod host_proof;
mod known_hosts;
mod lines;
mod options;
mod pattern;
mod pem;
mod private;
mod public;
mod signer;
mod verify;

pub use any::{AnyKey, MAX_KEY_BLOB, verify_blob};
pub use authorized::{AuthorizedKeys, Denied, MAX_AUTHORIZED_KEYS, Offer};
pub use certificate::{CertCheck, CertError, CertKind, Certificate};
pub use error::{KeyError, Place, Problem};
pub use file::{Encryption, MAX_KEY_FILE};
pub use grant::{Forward, Grant};
pub use host_proof::{check_proof, prove};
pub use known_hosts::{HostName, KnownHosts, KnownKey, MAX_KNOWN_HOSTS, Verdict};
pub use pattern::{Cidr, SourceList};
pub use private::{KeyKind, PrivateKey};
pub use public::{PublicKey, certificate_type};
pub use signer::{CertifiedKey, KeySet, Signer};
pub use verify::{Presence, RSA_MIN_BITS};

#[cfg(test)]
mod tests;
