//! The hellos of two browsers of 2018, both 517 bytes long.

use adit_wire::Entropy;

use crate::tls::{be16, server_name_extension};

/// Length of the session ticket in bytes.
pub(crate) const TICKET_LEN: usize = 192;

/// The browser whose hello is imitated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Browser {
    /// Chrome, the default.
    #[default]
    Chrome,
    /// Firefox.
    Firefox,
}

impl Browser {
    /// Returns the maximum length of a server name in its hello, in bytes.
    #[must_use]
    pub const fn max_name(self) -> usize {
        self.name_and_padding_len() - SERVER_NAME
    }

    /// Returns the number of bytes of the server name's extension and the padding together.
    const fn name_and_padding_len(self) -> usize {
        match self {
            Self::Chrome => 110,
            Self::Firefox => 121,
        }
    }

    const fn cipher_suites(self) -> &'static [u8] {
        match self {
            Self::Chrome => &[
                0x00, 0x1c, 0x2a, 0x2a, 0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30, 0xcc, 0xa9,
                0xcc, 0xa8, 0xc0, 0x13, 0xc0, 0x14, 0x00, 0x9c, 0x00, 0x9d, 0x00, 0x2f, 0x00, 0x35,
                0x00, 0x0a,
            ],
            Self::Firefox => &[
                0x00, 0x1e, 0xc0, 0x2b, 0xc0, 0x2f, 0xcc, 0xa9, 0xcc, 0xa8, 0xc0, 0x2c, 0xc0, 0x30,
                0xc0, 0x0a, 0xc0, 0x09, 0xc0, 0x13, 0xc0, 0x14, 0x00, 0x33, 0x00, 0x39, 0x00, 0x2f,
                0x00, 0x35, 0x00, 0x0a,
            ],
        }
    }
}

/// Number of bytes of a server-name extension without the name.
const SERVER_NAME: usize = 9;

const RENEGOTIATION: &[u8] = &[0xff, 0x01, 0, 1, 0];
const EXTENDED_MASTER_SECRET: &[u8] = &[0, 0x17, 0, 0];
const STATUS_REQUEST: &[u8] = &[0, 5, 0, 5, 1, 0, 0, 0, 0];
const CERTIFICATE_TIMESTAMP: &[u8] = &[0, 0x12, 0, 0];
const CHANNEL_ID: &[u8] = &[0x75, 0x50, 0, 0];
const POINT_FORMATS: &[u8] = &[0, 0x0b, 0, 2, 1, 0];
const PROTOCOLS: &[u8] = b"\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1";
const CHROME_SIGNATURES: &[u8] = &[
    0x00, 0x0d, 0x00, 0x14, 0x00, 0x12, 0x04, 0x03, 0x08, 0x04, 0x04, 0x01, 0x05, 0x03, 0x08, 0x05,
    0x05, 0x01, 0x08, 0x06, 0x06, 0x01, 0x02, 0x01,
];
const FIREFOX_SIGNATURES: &[u8] = &[
    0x00, 0x0d, 0x00, 0x18, 0x00, 0x16, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x04, 0x08, 0x05,
    0x08, 0x06, 0x04, 0x01, 0x05, 0x01, 0x06, 0x01, 0x02, 0x03, 0x02, 0x01,
];
const FIREFOX_GROUPS: &[u8] = &[
    0x00, 0x0a, 0x00, 0x0a, 0x00, 0x08, 0x00, 0x1d, 0x00, 0x17, 0x00, 0x18, 0x00, 0x19,
];

/// The random numbers of one connection.
pub(crate) struct HelloRandom {
    pub(crate) session: [u8; 32],
    /// Three reserved values (RFC 8701), each given by its two equal bytes.
    pub(crate) grease: [u8; 3],
}

impl HelloRandom {
    pub(crate) fn draw_random(entropy: &mut dyn Entropy) -> Self {
        let mut session = [0; 32];
        entropy.fill(&mut session);
        let mut grease = [0; 3];
        entropy.fill(&mut grease);
        Self {
            session,
            grease: grease.map(|byte| byte & 0xf0 | 0x0a),
        }
    }
}

/// A client's first message.
pub(crate) struct GoQuietHello<'a> {
    pub(crate) browser: Browser,
    pub(crate) random: [u8; 32],
    pub(crate) rng: &'a HelloRandom,
    /// At most [`Browser::max_name`] bytes.
    pub(crate) name: &'a str,
    pub(crate) ticket: &'a [u8; TICKET_LEN],
}

impl GoQuietHello<'_> {
    /// Encodes the record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let extensions = match self.browser {
            Browser::Chrome => self.chrome_extensions(),
            Browser::Firefox => self.firefox_extensions(),
        };
        let mut out = Vec::with_capacity(517);
        out.extend_from_slice(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
        out.extend_from_slice(&self.random);
        out.push(32);
        out.extend_from_slice(&self.rng.session);
        out.extend_from_slice(self.browser.cipher_suites());
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&be16(extensions.len()));
        out.extend_from_slice(&extensions);
        out
    }

    fn chrome_extensions(&self) -> Vec<u8> {
        let [a, b, c] = self.rng.grease;
        let groups = [0, 0x0a, 0, 0x0a, 0, 8, b, b, 0, 0x1d, 0, 0x17, 0, 0x18];
        [
            &[a, a, 0, 0],
            RENEGOTIATION,
            &server_name_extension(self.name),
            EXTENDED_MASTER_SECRET,
            &self.ticket_extension(),
            CHROME_SIGNATURES,
            STATUS_REQUEST,
            CERTIFICATE_TIMESTAMP,
            PROTOCOLS,
            CHANNEL_ID,
            POINT_FORMATS,
            &groups,
            &[c, c, 0, 1, 0],
            &self.padding_extension(),
        ]
        .concat()
    }

    fn firefox_extensions(&self) -> Vec<u8> {
        [
            &server_name_extension(self.name)[..],
            EXTENDED_MASTER_SECRET,
            RENEGOTIATION,
            FIREFOX_GROUPS,
            POINT_FORMATS,
            &self.ticket_extension(),
            PROTOCOLS,
            STATUS_REQUEST,
            FIREFOX_SIGNATURES,
            &self.padding_extension(),
        ]
        .concat()
    }

    fn ticket_extension(&self) -> Vec<u8> {
        [&[0, 0x23, 0, 0xc0], &self.ticket[..]].concat()
    }

    /// Returns the padding extension, which compensates for a short name.
    fn padding_extension(&self) -> Vec<u8> {
        let len = self.browser.max_name().saturating_sub(self.name.len());
        let mut out = vec![0, 0x15];
        out.extend_from_slice(&be16(len));
        out.resize(4 + len, 0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hello_has_one_length() {
        for browser in [Browser::Chrome, Browser::Firefox] {
            for n in 0..=browser.max_name() {
                let rng = HelloRandom {
                    session: [1; 32],
                    grease: [0x1a; 3],
                };
                let hello = GoQuietHello {
                    browser,
                    random: [2; 32],
                    rng: &rng,
                    name: &"a".repeat(n),
                    ticket: &[3; TICKET_LEN],
                };
                assert_eq!(hello.encode().len(), 517);
            }
        }
    }
}
