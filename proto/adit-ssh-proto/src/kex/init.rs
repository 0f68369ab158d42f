//! KEXINIT: the lists of names that each side offers (RFC 4253 section 7.1).

use crate::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac, Preferred};
use crate::error::SshError;
use crate::msg;
use crate::wire::{NameList, Put, Reader};

/// In a client's first list of methods: it wants EXT_INFO (RFC 8308 section 2.1).
pub const EXT_INFO_CLIENT: &str = "ext-info-c";
/// The same of a server.
pub const EXT_INFO_SERVER: &str = "ext-info-s";
/// In a client's first list of methods: it can do strict key exchange (OpenSSH's `PROTOCOL`, 1.9).
pub const STRICT_CLIENT: &str = "kex-strict-c-v00@openssh.com";
/// The same of a server.
pub const STRICT_SERVER: &str = "kex-strict-s-v00@openssh.com";

/// A KEXINIT as it came. Of the pairs, the first is client to server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KexInit<'a> {
    /// Random octets.
    pub cookie: [u8; 16],
    /// Methods of key exchange, and markers.
    pub kex: NameList<'a>,
    /// Algorithms of the host key.
    pub host_key: NameList<'a>,
    /// Ciphers.
    pub cipher: [NameList<'a>; 2],
    /// MACs.
    pub mac: [NameList<'a>; 2],
    /// Compression.
    pub compression: [NameList<'a>; 2],
    /// Whether the next packet is for the first method of the list, unasked.
    pub first_kex_packet_follows: bool,
}

impl<'a> KexInit<'a> {
    /// Reads a payload, the message number in front.
    ///
    /// # Errors
    /// [`SshError::Malformed`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, SshError> {
        let mut r = Reader::new(payload, "KEXINIT");
        if r.u8()? != msg::KEXINIT {
            return Err(r.malformed());
        }
        let cookie = r.array()?;
        let (kex, host_key) = (r.name_list()?, r.name_list()?);
        let mut pair = || Ok::<_, SshError>([r.name_list()?, r.name_list()?]);
        let (cipher, mac, compression) = (pair()?, pair()?, pair()?);
        // Languages: nobody has any.
        pair()?;
        let first_kex_packet_follows = r.boolean()?;
        r.u32()?;
        r.end()?;
        Ok(Self {
            cookie,
            kex,
            host_key,
            cipher,
            mac,
            compression,
            first_kex_packet_follows,
        })
    }

    /// The first method that is one, not a marker.
    pub(super) fn first_kex(&self) -> Option<&'a str> {
        let marker = |name: &&str| {
            [
                EXT_INFO_CLIENT,
                EXT_INFO_SERVER,
                STRICT_CLIENT,
                STRICT_SERVER,
            ]
            .contains(name)
        };
        self.kex.iter().find(|name| !marker(name))
    }
}

/// Appends a KEXINIT that offers `preferred`, the same in both directions, and `markers` at the end
/// of the methods. It never announces a guess.
pub fn write_kexinit(
    preferred: &Preferred,
    markers: &[&'static str],
    cookie: [u8; 16],
    out: &mut Vec<u8>,
) {
    out.put_u8(msg::KEXINIT);
    out.put_raw(&cookie);
    let kex = preferred.kex.iter().copied().map(Kex::name);
    out.put_names(kex.chain(markers.iter().copied()));
    out.put_names(preferred.host_key.iter().copied().map(KeyAlgorithm::name));
    for _ in 0..2 {
        out.put_names(preferred.cipher.iter().copied().map(Cipher::name));
    }
    for _ in 0..2 {
        out.put_names(preferred.mac.iter().copied().map(Mac::name));
    }
    for _ in 0..2 {
        out.put_names(preferred.compression.iter().copied().map(Compression::name));
    }
    for _ in 0..2 {
        out.put_names([]);
    }
    out.put_bool(false);
    out.put_u32(0);
}
