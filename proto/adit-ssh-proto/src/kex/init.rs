//! KEXINIT: the lists of names that each side offers (RFC 4253 section 7.1).

use crate::algorithm::{AlgorithmPreferences, Cipher, Compression, Kex, KeyAlgorithm, Mac};
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, NameList, SshBufMut};

/// Marker in a client's first list of methods: it accepts EXT_INFO (RFC 8308 section 2.1).
pub const EXT_INFO_CLIENT: &str = "ext-info-c";
/// Marker in a server's first list of methods: it accepts EXT_INFO.
pub const EXT_INFO_SERVER: &str = "ext-info-s";
/// Marker in a client's first list of methods: it supports strict key exchange (OpenSSH's
/// `PROTOCOL`, 1.9).
pub const STRICT_CLIENT: &str = "kex-strict-c-v00@openssh.com";
/// Marker in a server's first list of methods: it supports strict key exchange.
pub const STRICT_SERVER: &str = "kex-strict-s-v00@openssh.com";

/// A received KEXINIT. In each pair, client to server is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KexInit<'a> {
    /// Random bytes.
    pub cookie: [u8; 16],
    /// Key exchange methods and markers.
    pub kex: NameList<'a>,
    /// Host key algorithms.
    pub host_key: NameList<'a>,
    /// Ciphers.
    pub cipher: [NameList<'a>; 2],
    /// MACs.
    pub mac: [NameList<'a>; 2],
    /// Compression methods.
    pub compression: [NameList<'a>; 2],
    /// True if the next packet already belongs to the first method of the list, as a guess.
    pub first_kex_packet_follows: bool,
}

impl<'a> KexInit<'a> {
    /// Parses a payload that starts with the message number.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not a valid KEXINIT.
    pub fn parse(payload: &'a [u8]) -> Result<Self, SshError> {
        let mut r = MessageReader::new(payload, "KEXINIT");
        if r.read_u8()? != msg::KEXINIT {
            return Err(r.malformed_error());
        }
        let cookie = r.read_array()?;
        let (kex, host_key) = (r.read_name_list()?, r.read_name_list()?);
        let mut pair = || Ok::<_, SshError>([r.read_name_list()?, r.read_name_list()?]);
        let (cipher, mac, compression) = (pair()?, pair()?, pair()?);
        // Languages, which are unused in practice.
        pair()?;
        let first_kex_packet_follows = r.read_bool()?;
        r.read_u32()?;
        r.expect_end()?;
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

    /// Returns the first method that is not a marker.
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

/// Appends a KEXINIT that offers `preferred` in both directions, with `markers` after the methods.
/// It never announces a guess.
pub fn write_kexinit(
    preferred: &AlgorithmPreferences,
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
