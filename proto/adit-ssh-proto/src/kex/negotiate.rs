//! What two KEXINITs agree on (RFC 4253 section 7.1): of each list the first name of the client's
//! that the server has too.
//!
//! The directions are chosen each by itself, and a cipher with a tag of its own needs no common
//! MAC. Markers can never be chosen: they are no names of algorithms.

use core::fmt;

use adit_wire::Role;

use super::KexInit;
use crate::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use crate::error::SshError;
use crate::wire::NameList;

/// How much of the peer's names an error tells, in octets.
const TOLD: usize = 1024;

/// What both sides will use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// The method of this exchange.
    pub kex: Kex,
    /// The algorithm of the host key.
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
    /// The MAC; `None` with a cipher that has a tag of its own.
    pub mac: Option<Mac>,
    /// Compression.
    pub compression: Compression,
}

/// For logs: `kex, host key; cipher, MAC, compression out; the same in`.
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

/// Chooses; `role` is ours.
///
/// # Errors
/// [`SshError::NoCommon`] with the names of both sides.
pub fn negotiate(
    role: Role,
    ours: &KexInit<'_>,
    theirs: &KexInit<'_>,
) -> Result<Negotiated, SshError> {
    let both = Both { role, ours, theirs };
    let direction = |n: usize, names: [&'static str; 3]| -> Result<DirectionAlgorithms, SshError> {
        let [cipher, mac, compression] = names;
        let cipher = both.choose(cipher, |k| pick(&k.cipher, n), Cipher::by_name)?;
        let mac = if cipher.is_aead() {
            None
        } else {
            Some(both.choose(mac, |k| pick(&k.mac, n), Mac::by_name)?)
        };
        let compression = both.choose(
            compression,
            |k| pick(&k.compression, n),
            Compression::by_name,
        )?;
        Ok(DirectionAlgorithms {
            cipher,
            mac,
            compression,
        })
    };
    Ok(Negotiated {
        kex: both.choose("method of key exchange", |k| k.kex, Kex::by_name)?,
        host_key: both.choose("host key algorithm", |k| k.host_key, KeyAlgorithm::by_name)?,
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

/// Whether the packet that the peer announced with `first_kex_packet_follows` is for a method or a
/// host key that was not chosen, and so is to be dropped.
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

fn pick<'a>(pair: &[NameList<'a>; 2], n: usize) -> NameList<'a> {
    let [up, down] = *pair;
    if n == 0 { up } else { down }
}

struct Both<'a> {
    role: Role,
    ours: &'a KexInit<'a>,
    theirs: &'a KexInit<'a>,
}

impl<'a> Both<'a> {
    fn choose<T>(
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
        // One of the two lists is ours and short: no quadratic work for a long one of the peer's.
        let chosen = client
            .iter()
            .filter(|name| server.has(name))
            .find_map(by_name);
        chosen.ok_or_else(|| SshError::NoCommon {
            what,
            ours: ours.as_str().to_owned(),
            theirs: theirs.as_str().chars().take(TOLD).collect(),
        })
    }
}
