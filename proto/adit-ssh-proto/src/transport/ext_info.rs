//! EXT_INFO: the peer's protocol extensions (RFC 8308).

use adit_wire::narrow_int;

use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, NameList, SshBufMut};

/// Maximum number of extensions in one message.
const MOST: u32 = 64;

/// Extensions that the peer announced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Extensions {
    /// `server-sig-algs`: the supported ones of the algorithms that the server accepts from users.
    pub user_algorithms: Option<Vec<KeyAlgorithm>>,
    /// `publickey-hostbound@openssh.com`: user signatures may cover the host key.
    pub hostbound: bool,
    /// `ping@openssh.com`: PING is answered.
    pub ping: bool,
    /// `ext-info-in-auth@openssh.com`: the client accepts a second EXT_INFO during authentication.
    pub ext_info_in_auth: bool,
}

impl Extensions {
    /// Adds the extensions of an EXT_INFO; a later value replaces an earlier one.
    pub(super) fn apply_ext_info(&mut self, payload: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(payload, "EXT_INFO");
        r.read_u8()?;
        let count = r.read_u32()?;
        if count > MOST {
            return Err(r.malformed_error());
        }
        for _ in 0..count {
            let (name, value) = (r.read_string()?, r.read_string()?);
            match name {
                b"server-sig-algs" => {
                    self.user_algorithms = Some(parse_signature_algorithms(value)?);
                }
                b"publickey-hostbound@openssh.com" => self.hostbound = value == b"0",
                b"ping@openssh.com" => self.ping = value == b"0",
                b"ext-info-in-auth@openssh.com" => self.ext_info_in_auth = value == b"0",
                _ => {}
            }
        }
        r.expect_end()
    }
}

/// Parses `server-sig-algs`, whose value is a name-list without its own length.
fn parse_signature_algorithms(value: &[u8]) -> Result<Vec<KeyAlgorithm>, SshError> {
    let mut whole = Vec::with_capacity(value.len() + 4);
    whole.put_string(value);
    let list: NameList<'_> = MessageReader::new(&whole, "server-sig-algs").read_name_list()?;
    Ok(list.iter().filter_map(KeyAlgorithm::by_name).collect())
}

/// Writes a server's EXT_INFO.
pub(super) fn write_server_ext_info(user_algorithms: &[KeyAlgorithm], out: &mut Vec<u8>) {
    let names: Vec<&str> = user_algorithms
        .iter()
        .copied()
        .map(KeyAlgorithm::name)
        .collect();
    let algorithms = names.join(",");
    write_ext_info(
        &[
            ("server-sig-algs", &algorithms),
            ("publickey-hostbound@openssh.com", "0"),
            ("ping@openssh.com", "0"),
        ],
        out,
    );
}

/// Writes a client's EXT_INFO.
pub(super) fn write_client_ext_info(out: &mut Vec<u8>) {
    write_ext_info(&[("ext-info-in-auth@openssh.com", "0")], out);
}

fn write_ext_info(extensions: &[(&str, &str)], out: &mut Vec<u8>) {
    out.put_u8(msg::EXT_INFO);
    out.put_u32(narrow_int(extensions.len()));
    for (name, value) in extensions {
        out.put_string(name.as_bytes());
        out.put_string(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        write_server_ext_info(&[KeyAlgorithm::Ed25519, KeyAlgorithm::RsaSha512], &mut out);
        let mut read = Extensions::default();
        read.apply_ext_info(&out).unwrap();
        let algorithms = Some(vec![KeyAlgorithm::Ed25519, KeyAlgorithm::RsaSha512]);
        assert_eq!(
            (&read.user_algorithms, read.hostbound, read.ping),
            (&algorithms, true, true)
        );
        let mut out = Vec::new();
        write_client_ext_info(&mut out);
        read.apply_ext_info(&out).unwrap();
        assert!(read.ext_info_in_auth && read.ping && read.user_algorithms == algorithms);
    }

    #[test]
    fn unknown_ones_are_passed_over_and_many_are_refused() {
        let mut out = Vec::new();
        write_ext_info(
            &[
                ("x@y", "\u{0}\u{1}"),
                ("server-sig-algs", "ssh-rsa,ssh-ed25519"),
            ],
            &mut out,
        );
        let mut read = Extensions::default();
        read.apply_ext_info(&out).unwrap();
        assert_eq!(read.user_algorithms, Some(vec![KeyAlgorithm::Ed25519]));
        assert!(read.apply_ext_info(&[7, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(read.apply_ext_info(&[7, 0, 0, 0, 1]).is_err());
        out.push(0);
        assert!(read.apply_ext_info(&out).is_err());
    }
}
