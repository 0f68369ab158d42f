//! The start of a connection, up to the server's lists (RFC 4253 sections 4.2 and 7.1).

use adit_ssh_proto::algorithm::{AlgorithmPreferences, CpuFeatures};
use adit_ssh_proto::kex::{EXT_INFO_CLIENT, KexInit, STRICT_CLIENT, STRICT_SERVER, write_kexinit};
use adit_ssh_proto::packet::{Opened, Opener, Sealer};
use adit_ssh_proto::version::{Identification, IdentificationReader, IdentificationStep};
use adit_ssh_proto::wire::{MessageReader, NameList, SshBufMut, to_printable};
use adit_ssh_proto::{Disconnect, Role, SshError, msg};
use adit_wire::{Entropy, subslice};

/// Maximum number of packets before the lists.
const MAX_PACKETS_BEFORE: u32 = 16;
/// Maximum length of a line before the version, and of a disconnect message, in bytes.
const MAX_TEXT_LEN: usize = 200;

/// Algorithm names for both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectionalNames {
    pub(super) to_server: Vec<String>,
    pub(super) to_client: Vec<String>,
}

impl DirectionalNames {
    fn new([up, down]: [NameList<'_>; 2]) -> Self {
        Self {
            to_server: to_names(up),
            to_client: to_names(down),
        }
    }

    /// Returns the names in both lists.
    pub(super) fn common(&self) -> impl Iterator<Item = &str> {
        let up = self.to_server.iter();
        up.filter(|name| self.to_client.contains(name))
            .map(String::as_str)
    }
}

/// The algorithms that a server offers, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerOffer {
    pub(super) version: String,
    /// Key exchange methods, without the markers of extensions.
    pub(super) kex: Vec<String>,
    pub(super) host_keys: Vec<String>,
    pub(super) ciphers: DirectionalNames,
    pub(super) macs: DirectionalNames,
    pub(super) compression: DirectionalNames,
    /// True if the server supports strict key exchange.
    pub(super) strict: bool,
}

impl ServerOffer {
    fn new(version: &Identification, lists: &KexInit<'_>) -> Self {
        let mut kex = to_names(lists.kex);
        kex.retain(|name| !name.starts_with("ext-info-") && !name.starts_with("kex-strict-"));
        Self {
            version: version.to_string(),
            kex,
            host_keys: to_names(lists.host_key),
            ciphers: DirectionalNames::new(lists.cipher),
            macs: DirectionalNames::new(lists.mac),
            compression: DirectionalNames::new(lists.compression),
            strict: lists.kex.contains(STRICT_SERVER),
        }
    }
}

fn to_names(list: NameList<'_>) -> Vec<String> {
    list.iter().map(str::to_owned).collect()
}

/// Returns the client's version line and its lists, with all algorithms.
pub(super) fn client_hello(rng: &mut dyn Entropy) -> Result<Vec<u8>, SshError> {
    let (mut out, mut lists, mut cookie) = (Vec::new(), Vec::new(), [0; 16]);
    Identification::from_software_name(concat!("adit_", env!("CARGO_PKG_VERSION")))?
        .write_line(&mut out);
    rng.fill(&mut cookie);
    let preferred = AlgorithmPreferences::for_machine(CpuFeatures {
        aes: true,
        clmul: true,
    });
    let markers = [EXT_INFO_CLIENT, STRICT_CLIENT];
    write_kexinit(&preferred, &markers, cookie, &mut lists);
    Sealer::new().seal(&lists, &mut out)?;
    Ok(out)
}

/// Returns a disconnect message, so that the server does not log a lost connection.
pub(super) fn disconnect_message() -> Vec<u8> {
    let mut payload = vec![msg::DISCONNECT];
    payload.put_u32(Disconnect::ByApplication as u32);
    payload.put_string(b"only looked at what is offered");
    payload.put_string(b"");
    let mut out = Vec::new();
    // Sealing a short packet in the clear does not fail.
    let _ = Sealer::new().seal(&payload, &mut out);
    out
}

/// Reads the server's line and its lists.
#[derive(Debug)]
pub(super) struct AlgorithmListsReader {
    lines: IdentificationReader,
    version: Option<Identification>,
    opener: Opener,
    first_line: Option<String>,
    before: u32,
}

impl Default for AlgorithmListsReader {
    fn default() -> Self {
        Self {
            lines: IdentificationReader::new(Role::Server),
            version: None,
            opener: Opener::new(),
            first_line: None,
            before: 0,
        }
    }
}

impl AlgorithmListsReader {
    /// Processes and removes complete lines and packets at the front of `wire`.
    pub(super) fn read_from(
        &mut self,
        wire: &mut Vec<u8>,
    ) -> Result<Option<ServerOffer>, SshError> {
        loop {
            let consumed = match &self.version {
                None => match self.lines.next_step(wire)? {
                    IdentificationStep::NeedMore => return Ok(None),
                    IdentificationStep::Skipped { consumed } => {
                        let line = subslice(wire, ..consumed);
                        let line = to_printable(line.trim_ascii_end(), MAX_TEXT_LEN);
                        self.first_line.get_or_insert(line);
                        consumed
                    }
                    IdentificationStep::Done { consumed, version } => {
                        self.version = Some(version);
                        consumed
                    }
                },
                Some(version) => match self.opener.open(wire)? {
                    Opened::NeedMore { .. } => return Ok(None),
                    Opened::Packet { consumed, payload } => {
                        let payload = self.opener.payload(wire, &payload);
                        if let Some(offer) = parse_packet(version, payload)? {
                            return Ok(Some(offer));
                        }
                        consumed
                    }
                },
            };
            if self.version.is_some() {
                self.before += 1;
            }
            if self.before > MAX_PACKETS_BEFORE {
                return Err(SshError::Malformed("packets before the lists"));
            }
            wire.drain(..consumed);
        }
    }

    /// Returns the server's version, if it has arrived.
    pub(super) const fn version(&self) -> Option<&Identification> {
        self.version.as_ref()
    }

    /// Returns the first line before the version.
    pub(super) fn first_line(&self) -> Option<&str> {
        self.first_line.as_deref()
    }
}

fn parse_packet(version: &Identification, payload: &[u8]) -> Result<Option<ServerOffer>, SshError> {
    let mut r = MessageReader::new(payload, "packet");
    match r.read_u8()? {
        msg::KEXINIT => Ok(Some(ServerOffer::new(version, &KexInit::parse(payload)?))),
        msg::IGNORE | msg::DEBUG | msg::UNIMPLEMENTED => Ok(None),
        msg::DISCONNECT => Err(SshError::Disconnected {
            reason: r.read_u32()?,
            text: to_printable(r.read_string()?, MAX_TEXT_LEN),
        }),
        number => Err(SshError::Unexpected(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    /// The server sends a line, then the hello of adit, byte by byte.
    #[test]
    fn the_lists_are_read_in_pieces() {
        let hello = client_hello(&mut FixedEntropy::default()).unwrap();
        let said = [b"Welcome\x07!\r\n", &hello[..]].concat();
        let (mut looker, mut wire, mut found) = (AlgorithmListsReader::default(), Vec::new(), None);
        for byte in said {
            assert!(found.is_none(), "found before its end");
            wire.push(byte);
            found = looker.read_from(&mut wire).unwrap();
        }
        let offer = found.unwrap();
        assert_eq!(looker.first_line(), Some("Welcome?!"));
        assert_eq!(
            offer.version,
            concat!("SSH-2.0-adit_", env!("CARGO_PKG_VERSION"))
        );
        assert!(!offer.strict, "a client's marker is no server's");
        assert_eq!(offer.kex[0], "mlkem768x25519-sha256");
        assert!(offer.kex.iter().all(|name| !name.contains("kex-strict")));
        assert_eq!(offer.ciphers.common().count(), 6);
        assert_eq!(offer.macs.to_client[0], "umac-64-etm@openssh.com");
    }

    #[test]
    fn what_is_no_ssh_is_an_error() {
        for bytes in [
            &b"SSH-1.5-old\r\n"[..],
            b"\0\r\n",
            b"SSH-2.0-x\r\n\xff\xff\xff\xff",
        ] {
            assert!(
                AlgorithmListsReader::default()
                    .read_from(&mut bytes.to_vec())
                    .is_err()
            );
        }
        let mut flood = b"SSH-2.0-x\r\n".to_vec();
        let mut sealer = Sealer::new();
        (0..100).for_each(|_| sealer.seal(&[msg::IGNORE], &mut flood).unwrap());
        assert!(
            AlgorithmListsReader::default()
                .read_from(&mut flood)
                .is_err()
        );
        let mut bye = [b"SSH-2.0-x\r\n", &disconnect_message()[..]].concat();
        let why = AlgorithmListsReader::default()
            .read_from(&mut bye)
            .unwrap_err()
            .to_string();
        assert!(why.contains("only looked at"), "{why}");
    }
}
