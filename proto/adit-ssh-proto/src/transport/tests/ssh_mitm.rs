//! An attacker between both sides, who adds unencrypted packets and removes the first encrypted
//! ones: prefix truncation, CVE-2023-48795.

use super::super::{StrictKex, TransportConfig};
use super::{End, Link, clear, data, pair_in, settings};
use crate::algorithm::{Cipher, Mac};
use crate::wire::SshBufMut;
use crate::{SshError, msg};

/// Messages without meaning that anyone can send without keys.
fn noise() -> [Vec<u8>; 3] {
    let mut ignore = vec![msg::IGNORE];
    ignore.put_string(b"x");
    let mut debug = vec![msg::DEBUG, 0];
    debug.put_string(b"words");
    debug.put_string(b"");
    let mut unimplemented = vec![msg::UNIMPLEMENTED];
    unimplemented.put_u32(0);
    [ignore, debug, unimplemented]
}

/// Splits off the line at the front.
fn line(said: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = said.iter().position(|b| *b == b'\n').unwrap() + 1;
    (said[..end].to_vec(), said[end..].to_vec())
}

/// Splits off the unencrypted packets up to NEWKEYS.
fn until_newkeys(said: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut at = 0;
    loop {
        let length = u32::from_be_bytes(said[at..at + 4].try_into().unwrap());
        let number = said[at + 5];
        at += 4 + length as usize;
        if number == msg::NEWKEYS {
            return (said[..at].to_vec(), said[at..].to_vec());
        }
    }
}

fn config(strict: StrictKex, cipher: Cipher, mac: Mac) -> TransportConfig {
    let mut config = settings();
    config.strict = strict;
    config.preferred.cipher = vec![cipher];
    config.preferred.mac = vec![mac];
    config
}

/// Attacks a client: adds one packet before NEWKEYS, and removes the server's EXT_INFO. Returns the
/// client's results for the added packet, and for the first packet that it receives under keys.
fn truncate(config: &TransportConfig, added: Option<&[u8]>) -> (End, Result<(), SshError>) {
    let mut link = Link::new(config.clone(), config.clone());
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    let down = link.server.said();
    link.client.hear(&down).unwrap();
    let added = added.map_or(Ok(()), |packet| link.client.hear(&clear(packet)));
    if added.is_err() {
        return (link.client, added);
    }
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    let (keys, extensions) = until_newkeys(&link.server.said());
    assert!(!extensions.is_empty());
    link.client.hear(&keys).unwrap();
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    assert_eq!(link.client.keys(), 1);
    link.server.transport.send(&data(1, 30)).unwrap();
    let down = link.server.said();
    let heard = link.client.hear(&down);
    (link.client, heard)
}

/// Shows that the test performs the attack: without the countermeasure, it succeeds.
#[test]
fn terrapin_works_without_strict_kex() {
    let config = config(StrictKex::Never, Cipher::ChaCha20Poly1305, Mac::Umac64);
    let [ignore, ..] = noise();
    let (client, heard) = truncate(&config, Some(&ignore));
    assert_eq!(heard, Ok(()));
    assert_eq!(client.payloads, [data(1, 30)]);
    assert!(!client.transport.extensions().ping, "EXT_INFO was lost");
    assert!(
        truncate(&config, None).0.payloads.is_empty(),
        "not like this"
    );
}

#[test]
fn terrapin_chacha() {
    for strict in [StrictKex::WhenExposed, StrictKex::Always] {
        let config = config(strict, Cipher::ChaCha20Poly1305, Mac::Umac64);
        for added in noise() {
            let (_, heard) = truncate(&config, Some(&added));
            assert_eq!(heard, Err(SshError::Unexpected(added[0])));
        }
        assert!(truncate(&config, None).0.payloads.is_empty());
    }
}

/// Counter mode with encrypt then MAC: the tag is accepted, but the plaintext is garbage.
#[test]
fn terrapin_etm() {
    for mac in Mac::ALL.iter().filter(|mac| mac.is_etm()) {
        let [ignore, ..] = noise();
        let exposed = config(StrictKex::Never, Cipher::Aes128Ctr, *mac);
        let (client, heard) = truncate(&exposed, Some(&ignore));
        assert_ne!(heard, Err(SshError::BadTag));
        assert_ne!(client.payloads, [data(1, 30)]);
        let strict = config(StrictKex::WhenExposed, Cipher::Aes128Ctr, *mac);
        let (_, heard) = truncate(&strict, Some(&ignore));
        assert_eq!(heard, Err(SshError::Unexpected(msg::IGNORE)));
        assert_eq!(truncate(&strict, None).1, Err(SshError::BadTag));
    }
}

/// GCM has its own counter.
#[test]
fn terrapin_gcm_is_no_prey() {
    let [ignore, ..] = noise();
    let config = config(StrictKex::Never, Cipher::Aes128Gcm, Mac::Umac64);
    assert_eq!(truncate(&config, Some(&ignore)).1, Err(SshError::BadTag));
}

/// The same messages at each place before the keys, to each side; allowed without strict key
/// exchange.
#[test]
fn nothing_is_added_before_the_keys() {
    for (strict, refused) in [(StrictKex::WhenExposed, true), (StrictKex::Never, false)] {
        for added in noise().map(|payload| clear(&payload)) {
            for place in 0..4 {
                for to_client in [true, false] {
                    let config = config(strict, Cipher::Aes128Gcm, Mac::Umac64);
                    let outcome = add(&config, &added, place, to_client);
                    assert_eq!(outcome.is_err(), refused, "{place} {to_client} {outcome:?}");
                }
            }
        }
    }
}

/// Adds messages at `place`: before KEXINIT, after it, after the method's own message, or, for a
/// client, right before NEWKEYS.
fn add(
    config: &TransportConfig,
    added: &[u8],
    place: usize,
    to_client: bool,
) -> Result<(), SshError> {
    let mut link = Link::new(config.clone(), config.clone());
    let (up, down) = (line(&link.client.said()), line(&link.server.said()));
    link.server.hear(&up.0)?;
    link.client.hear(&down.0)?;
    let add = |link: &mut Link, here: usize| match (place == here, to_client) {
        (false, _) => Ok(()),
        (true, true) => link.client.hear(added),
        (true, false) => link.server.hear(added),
    };
    add(&mut link, 0)?;
    link.server.hear(&up.1)?;
    link.client.hear(&down.1)?;
    add(&mut link, 1)?;
    let method = link.client.said();
    link.server.hear(&method)?;
    add(&mut link, 2)?;
    let (keys, rest) = until_newkeys(&link.server.said());
    // NEWKEYS is the last of them: 4 bytes of length and 12 more.
    let (reply, newkeys) = keys.split_at(keys.len() - 16);
    link.client.hear(reply)?;
    add(&mut link, 3)?;
    link.client.hear(newkeys)?;
    link.client.hear(&rest)?;
    link.settle()
}

/// With strict key exchange, new keys start at sequence number 0 in each direction, so no earlier
/// packet can replace a removed one.
#[test]
fn a_packet_less_is_noticed_at_every_exchange() {
    for cipher in Cipher::ALL {
        let config = config(StrictKex::Always, *cipher, Mac::Umac128Etm);
        let mut link = pair_in(config.clone(), config);
        link.server.transport.rekey().unwrap();
        link.settle().unwrap();
        link.server.transport.send(&data(1, 20)).unwrap();
        link.server.said();
        link.server.transport.send(&data(2, 20)).unwrap();
        let down = link.server.said();
        let heard = link.client.hear(&down);
        assert!(link.client.payloads.is_empty(), "{cipher}");
        // Its length is encrypted, too, so its value is arbitrary.
        if *cipher == Cipher::ChaCha20Poly1305 {
            continue;
        }
        assert_eq!(heard, Err(SshError::BadTag), "{cipher}");
        // The server receives the reason.
        let up = link.client.said();
        let Err(SshError::Disconnected { reason: 5, text }) = link.server.hear(&up) else {
            panic!("no word of it");
        };
        assert_eq!(text, "packet authentication failed: wrong tag");
    }
}
