//! Algorithm negotiation from two KEXINITs (RFC 4253 section 7.1): in each list, the first of the
//! client's names that the server also has.
//!
//! The two directions are negotiated independently. A cipher with its own tag needs no common MAC.
//! Markers are never chosen, since they are not names of algorithms.

use core::fmt;

use adit_wire::Role;

use super::KexInit;
use crate::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use crate::error::SshError;
use crate::wire::NameList;

/// Maximum number of the peer's bytes in an error.
const MAX_REPORTED_NAMES: usize = 1024;

/// Algorithms that both sides will use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// Key exchange method.
    pub kex: Kex,
    /// Host key algorithm.
    pub host_key: KeyAlgorithm,
    /// From the client to the server.
    pub client_to_server: DirectionAlgorithms,
    /// From the server to the client.
    pub server_to_client: DirectionAlgorithms,
}

/// The algorithms of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectionAlgorithms {
    /// The cipher.
    pub cipher: Cipher,
    /// MAC; `None` if the cipher has its own tag.
    pub mac: Option<Mac>,
    /// Compression.
    pub compression: Compression,
}

/// Formats for logs: `kex, host key; client to server …; server to client …`.
impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (up, down) = (self.client_to_server, self.server_to_client);
        write!(
            f,
            "{}, {}; client to server {up}; server to client {down}",
            self.kex, self.host_key
        )
    }
}

impl fmt::Display for DirectionAlgorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mac = self.mac.map_or("its own tag", Mac::name);
        write!(f, "{}, {mac}, {}", self.cipher, self.compression)
    }
}

/// Chooses the algorithms; `role` is the local one.
///
/// # Errors
/// [`SshError::NoCommon`] with the names of both sides if a list has no name in common.
pub fn negotiate(
    role: Role,
    ours: &KexInit<'_>,
    theirs: &KexInit<'_>,
) -> Result<Negotiated, SshError> {
    let both = KexInitPair { role, ours, theirs };
    let direction = |n: usize, names: [&'static str; 3]| -> Result<DirectionAlgorithms, SshError> {
        let [cipher, mac, compression] = names;
        let cipher =
            both.choose_common(cipher, |k| list_of_direction(&k.cipher, n), Cipher::by_name)?;
        let mac = if cipher.is_aead() {
            None
        } else {
            Some(both.choose_common(mac, |k| list_of_direction(&k.mac, n), Mac::by_name)?)
        };
        let compression = both.choose_common(
            compression,
            |k| list_of_direction(&k.compression, n),
            Compression::by_name,
        )?;
        Ok(DirectionAlgorithms {
            cipher,
            mac,
            compression,
        })
    };
    Ok(Negotiated {
        kex: both.choose_common("method of key exchange", |k| k.kex, Kex::by_name)?,
        host_key: both.choose_common(
            "host key algorithm",
            |k| k.host_key,
            KeyAlgorithm::by_name,
        )?,
        client_to_server: direction(
            0,
            [
                "cipher (client to server)",
                "MAC (client to server)",
                "compression (client to server)",
            ],
        )?,
        server_to_client: direction(
            1,
            [
                "cipher (server to client)",
                "MAC (server to client)",
                "compression (server to client)",
            ],
        )?,
    })
}

/// True if the packet that the peer announced with `first_kex_packet_follows` is for a method or
/// host key algorithm that was not chosen, and therefore has to be ignored.
#[must_use]
pub fn guess_is_wrong(ours: &KexInit<'_>, theirs: &KexInit<'_>) -> bool {
    let first = |k: &KexInit<'_>| {
        (
            k.first_kex().map(str::to_owned),
            k.host_key.iter().next().map(str::to_owned),
        )
    };
    theirs.first_kex_packet_follows && first(ours) != first(theirs)
}

fn list_of_direction<'a>(pair: &[NameList<'a>; 2], n: usize) -> NameList<'a> {
    let [up, down] = *pair;
    if n == 0 { up } else { down }
}

struct KexInitPair<'a> {
    role: Role,
    ours: &'a KexInit<'a>,
    theirs: &'a KexInit<'a>,
}

impl<'a> KexInitPair<'a> {
    fn choose_common<T>(
        &self,
        what: &'static str,
        list: impl Fn(&KexInit<'a>) -> NameList<'a>,
        by_name: impl Fn(&str) -> Option<T>,
    ) -> Result<T, SshError> {
        let (ours, theirs) = (list(self.ours), list(self.theirs));
        let (client, server) = match self.role {
            Role::Client => (ours, theirs),
            Role::Server => (theirs, ours),
        };
        // One of the two lists is local and short, so a long list of the peer does not cause
        // quadratic work.
        let chosen = client
            .iter()
            .filter(|name| server.contains(name))
            .find_map(by_name);
        chosen.ok_or_else(|| SshError::NoCommon {
            what,
            ours: ours.as_str().to_owned(),
            theirs: theirs.as_str().chars().take(MAX_REPORTED_NAMES).collect(),
        })
    }
}
