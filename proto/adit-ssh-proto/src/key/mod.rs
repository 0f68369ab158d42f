//! Keys: signing and trust.
//!
//! * [`PublicKey`] and [`PrivateKey`] with their blobs, text forms and files; [`Certificate`]
//!   (OpenSSH's `PROTOCOL.certkeys`); [`Signer`], which local keys and key sets implement;
//! * [`KnownHosts`], the hosts that a client trusts, and [`AuthorizedKeys`], the keys that a server
//!   accepts, with the [`KeyGrant`] of a user's permissions;
//! * [`agent`], the messages of an agent that stores the private keys.
//!
//! This module opens no file and no socket: files are passed as text, and time is an argument.

pub mod agent;
mod any_key;
mod authorized;
mod base64;
mod certificate;
mod der;
mod error;
mod host_proof;
mod key_grant;
mod key_lines;
mod known_hosts;
mod line_options;
mod openssh_file;
mod pattern;
mod pem;
mod private_key;
mod public_key;
mod signer;
mod verify;

pub use any_key::{AnyKey, MAX_KEY_BLOB, verify_with_blob};
pub use authorized::{AuthorizedKeys, KeyDenied, KeyOffer, MAX_AUTHORIZED_KEYS};
pub use certificate::{CertCheck, CertError, CertPurpose, Certificate};
pub use error::{KeyError, LinePosition, SkippedLine};
pub use host_proof::{prove_host_keys, verify_host_key_proof};
pub use key_grant::{ForwardRule, KeyGrant};
pub use known_hosts::{HostKeyVerdict, HostName, KnownHosts, KnownKey, MAX_KNOWN_HOSTS};
pub use openssh_file::{Encryption, MAX_KEY_FILE};
pub use pattern::{AddressRange, SourceList};
pub use private_key::{KeyType, PrivateKey};
pub use public_key::{PublicKey, certificate_type};
pub use signer::{CertifiedKey, KeySet, Signer};
pub use verify::{RSA_MIN_BITS, UserPresence};

#[cfg(test)]
mod tests;
