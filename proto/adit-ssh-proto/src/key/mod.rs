//! Keys: what signs and what is trusted.
//!
//! * [`PublicKey`] and [`PrivateKey`] with their blobs, texts and files; [`Certificate`] (OpenSSH's
//!   `PROTOCOL.certkeys`); [`Signer`], which a local key and a set of keys are;
//! * [`KnownHosts`], whom a client trusts, and [`AuthorizedKeys`], whom a server lets in, with the
//!   [`Grant`] of what the user may do;
//! * [`agent`], the messages of an agent that holds the private keys.
//!
//! Nothing here opens a file or a socket: texts come in whole, and time is an argument.

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
