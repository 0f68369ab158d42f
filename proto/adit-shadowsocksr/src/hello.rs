//! The hello: time and ids, the fields of every first message.

use std::sync::{Mutex, PoisonError};

use adit_wire::{Entropy, ProtocolError, UnixTime, narrow_int};

use crate::field::get_field;

/// Time, client id and connection id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Seconds since 1970, the lower 32 bits. Not sent by `auth_sha1_v2`.
    pub(crate) time: u32,
    /// Four bytes and zeros; eight bytes in `auth_sha1_v2`.
    pub(crate) client: [u8; 8],
    pub(crate) connection: u32,
}

/// Length of the encoded fields in bytes, in every form.
pub(crate) const HELLO_LEN: usize = 12;

impl Hello {
    /// Encodes `LE32 time ‖ client id(4) ‖ LE32 connection id`.
    pub(crate) fn to_bytes(self) -> [u8; HELLO_LEN] {
        let [t0, t1, t2, t3] = self.time.to_le_bytes();
        let [a, b, c, d, ..] = self.client;
        let [n0, n1, n2, n3] = self.connection.to_le_bytes();
        [t0, t1, t2, t3, a, b, c, d, n0, n1, n2, n3]
    }

    /// Encodes `client id(8) ‖ LE32 connection id`.
    pub(crate) fn to_bytes_v2(self) -> [u8; HELLO_LEN] {
        let [a, b, c, d, e, f, g, h] = self.client;
        let [n0, n1, n2, n3] = self.connection.to_le_bytes();
        [a, b, c, d, e, f, g, h, n0, n1, n2, n3]
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let [a, b, c, d] = get_field(bytes, 4)?;
        Ok(Self {
            time: u32::from_le_bytes(get_field(bytes, 0)?),
            client: [a, b, c, d, 0, 0, 0, 0],
            connection: u32::from_le_bytes(get_field(bytes, 8)?),
        })
    }

    pub(crate) fn from_bytes_v2(bytes: &[u8]) -> Result<Self, ProtocolError> {
        Ok(Self {
            time: 0,
            client: get_field(bytes, 0)?,
            connection: u32::from_le_bytes(get_field(bytes, 8)?),
        })
    }
}

/// Returns the lower 32 bits of a time, as in the field.
pub(crate) fn seconds_field(now: UnixTime) -> u32 {
    narrow_int(now.0 & 0xffff_ffff)
}

/// A client's id at one server, and the number of its last connection.
pub(crate) struct ClientIdentity(Mutex<Option<([u8; 8], u32)>>);

/// Connection number after which a client takes another id.
const LAST_CONNECTION: u32 = 0xff00_0000;

/// The way an id and a first number are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdForm {
    Four,
    /// `auth_sha1_v2`: the id has eight bytes, and the first number is derived from it.
    Eight,
}

impl ClientIdentity {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the fields of the next connection.
    pub(crate) fn next_hello(
        &self,
        form: IdForm,
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Hello {
        // Ignores poisoning: a panic of another thread leaves the pair consistent.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, last) = match *held {
            Some((client, last)) if last <= LAST_CONNECTION => (client, last),
            _ => draw_identity(form, entropy),
        };
        let connection = last.wrapping_add(1);
        *held = Some((client, connection));
        Hello {
            time: seconds_field(now),
            client,
            connection,
        }
    }
}

fn draw_identity(form: IdForm, entropy: &mut dyn Entropy) -> ([u8; 8], u32) {
    let mut client = [0; 8];
    match form {
        IdForm::Four => {
            let mut raw = [0; 8];
            entropy.fill(&mut raw);
            let [a, b, c, d, x, y, z, _] = raw;
            ([a, b, c, d, 0, 0, 0, 0], u32::from_le_bytes([x, y, z, 0]))
        }
        IdForm::Eight => {
            entropy.fill(&mut client);
            let start = u64::from_le_bytes(client) % 0xff_fffd;
            (client, narrow_int(start))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    const NOW: UnixTime = UnixTime(1_700_000_000);

    #[test]
    fn connections_are_numbered() {
        let identity = ClientIdentity::new();
        let mut entropy = FixedEntropy::new([1, 2, 3, 4, 5, 0, 0, 9]);
        let first = identity.next_hello(IdForm::Four, NOW, &mut entropy);
        let second = identity.next_hello(IdForm::Four, NOW, &mut entropy);
        assert_eq!((first.connection, second.connection), (6, 7));
        assert_eq!(first.client, [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(Hello::from_bytes(&first.to_bytes()), Ok(first));
    }

    #[test]
    fn used_up_numbers_change_the_id() {
        let identity = ClientIdentity(Mutex::new(Some(([9; 8], LAST_CONNECTION + 1))));
        let mut entropy = FixedEntropy::new([1; 16]);
        let next = identity.next_hello(IdForm::Eight, NOW, &mut entropy);
        assert_eq!(next.client, [1; 8]);
        assert!(next.connection < 0x0100_0000);
        assert_eq!(
            Hello::from_bytes_v2(&next.to_bytes_v2()),
            Ok(Hello { time: 0, ..next })
        );
    }
}
