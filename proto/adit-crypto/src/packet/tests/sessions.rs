//! Tests of sessions: both ends, replays, reflections, recordings.

use adit_wire::{ProtocolError, SlidingWindow};
use proptest::prelude::*;

use super::*;
use crate::packet::session::{PacketSession, Role, SESSION_OVERHEAD, SessionCipher, SessionKey};

const CIPHERS: [SessionCipher; 2] = [SessionCipher::Aes128Gcm, SessionCipher::ChaCha20Poly1305];

fn sealed(session: &mut PacketSession, text: &[u8]) -> Vec<u8> {
    let mut packet = [
        &[0; SESSION_OVERHEAD.head][..],
        text,
        &[0; SESSION_OVERHEAD.tail],
    ]
    .concat();
    session.seal(&mut packet).unwrap();
    packet
}

/// Opens a packet from the other end as `to`.
fn opened(
    key: &SessionKey,
    to: &mut PacketSession,
    from: Role,
    packet: &[u8],
) -> Result<Vec<u8>, ProtocolError> {
    let head = key
        .decrypt_header(from, packet)
        .ok_or(ProtocolError::Unauthentic)?;
    let mut packet = packet.to_vec();
    let range = to.open(head, &mut packet)?;
    Ok(packet[range].to_vec())
}

fn accepted(
    key: &SessionKey,
    packet: &[u8],
    seed: u8,
) -> Result<(PacketSession, Vec<u8>), ProtocolError> {
    let head = key
        .decrypt_header(Role::Client, packet)
        .ok_or(ProtocolError::Unauthentic)?;
    let mut packet = packet.to_vec();
    let (session, range) = key.accept(head, &mut packet, &mut Counting(seed))?;
    assert_eq!(session.peer_id(), Some(head.id()));
    Ok((session, packet[range].to_vec()))
}

/// A client and a server that have received packets from each other.
fn pair(cipher: SessionCipher) -> (SessionKey, PacketSession, PacketSession) {
    let key = SessionKey::new(&KEY).unwrap();
    let mut client = key.connect(cipher, &mut Counting(1)).unwrap();
    let (mut server, text) = accepted(&key, &sealed(&mut client, b"first"), 2).unwrap();
    assert_eq!(text, b"first");
    let answer = sealed(&mut server, b"answer");
    assert_eq!(
        opened(&key, &mut client, Role::Server, &answer).unwrap(),
        b"answer"
    );
    let bound = sealed(&mut client, b"bound");
    assert!(!server.is_confirmed());
    assert_eq!(
        opened(&key, &mut server, Role::Client, &bound).unwrap(),
        b"bound"
    );
    assert!(server.is_confirmed() && client.is_confirmed());
    (key, client, server)
}

#[test]
fn every_length_goes_both_ways() {
    for cipher in CIPHERS {
        let (key, mut client, mut server) = pair(cipher);
        for len in 0..1500 {
            let text = payload(len);
            let packet = sealed(&mut client, &text);
            assert_eq!(packet.len(), len + 32);
            assert_eq!(
                opened(&key, &mut server, Role::Client, &packet).unwrap(),
                text
            );
            let packet = sealed(&mut server, &text);
            assert_eq!(
                opened(&key, &mut client, Role::Server, &packet).unwrap(),
                text
            );
        }
    }
}

/// Builds the layout from its description.
#[test]
fn bytes_on_the_wire() {
    let derive =
        |context: &str, material: &[&[u8]]| blake3::derive_key(context, &material.concat());
    let key = SessionKey::new(&KEY).unwrap();
    let mut client = key
        .connect(
            SessionCipher::ChaCha20Poly1305,
            &mut FixedEntropy::new(*b"clientid"),
        )
        .unwrap();
    sealed(&mut client, b"0");
    let packet = sealed(&mut client, b"text");
    let header = derive("adit packet session v1 header, from the client", &[&KEY]);
    let mut head: [u8; 16] = packet[..16].try_into().unwrap();
    crate::HeaderCipher::new(&header)
        .unwrap()
        .decrypt_block(&mut head);
    assert_eq!(head, *b"clientid\x01\0\0\0\0\0\0\x02");
    let context = "adit packet session v1 packets, from the client";
    let early = derive(context, &[&KEY, &[2], b"clientid", &[0; 8]]);
    let aead = AeadKey::new(AeadKind::ChaCha20Poly1305, &early).unwrap();
    let (mut text, nonce) = (*b"text", *b"\0\0\0\0\x01\0\0\0\0\0\0\x02");
    let tag = aead.seal_in_place(&nonce, &mut text).unwrap();
    assert_eq!(packet[16..], [&text[..], &tag].concat());

    let head = key.decrypt_header(Role::Client, &packet).unwrap();
    let mut rng = FixedEntropy::new(*b"serverid");
    let (mut server, _) = key.accept(head, &mut packet.clone(), &mut rng).unwrap();
    let answer = sealed(&mut server, b"text");
    let context = "adit packet session v1 packets, from the server";
    let bound = derive(context, &[&KEY, &[3], b"serverid", b"clientid"]);
    let aead = AeadKey::new(AeadKind::ChaCha20Poly1305, &bound).unwrap();
    let mut text = *b"text";
    let tag = aead
        .seal_in_place(b"\0\0\0\0\0\0\0\0\0\0\0\x03", &mut text)
        .unwrap();
    assert_eq!(answer[16..], [&text[..], &tag].concat());
}

#[test]
fn each_packet_opens_once() {
    let (key, mut client, mut server) = pair(SessionCipher::Aes128Gcm);
    let width = SlidingWindow::WIDTH as usize;
    let packets: Vec<Vec<u8>> = (0..width + 10).map(|_| sealed(&mut client, b"x")).collect();
    let mut open = |at: usize| opened(&key, &mut server, Role::Client, &packets[at]);
    for at in [5, 3, 4] {
        assert!(open(at).is_ok());
        assert_eq!(open(at), Err(ProtocolError::Replayed));
    }
    assert!(open(width + 3).is_ok());
    assert_eq!(open(2), Err(ProtocolError::Replayed), "too old");
    assert_eq!(open(5), Err(ProtocolError::Replayed));
    assert!(open(6).is_ok());
}

#[test]
fn early_packets_may_come_late() {
    let key = SessionKey::new(&KEY).unwrap();
    let mut client = key
        .connect(SessionCipher::preferred(), &mut Counting(1))
        .unwrap();
    let [first, second, third] = [b"1", b"2", b"3"].map(|text| sealed(&mut client, text));
    let (mut server, text) = accepted(&key, &second, 2).unwrap();
    assert_eq!(text, b"2");
    assert_eq!(
        opened(&key, &mut server, Role::Client, &second),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(
        opened(&key, &mut server, Role::Client, &third).unwrap(),
        b"3"
    );
    assert!(!server.is_confirmed());
    let answer = sealed(&mut server, b"");
    opened(&key, &mut client, Role::Server, &answer).unwrap();
    let bound = sealed(&mut client, b"4");
    assert_eq!(
        opened(&key, &mut server, Role::Client, &bound).unwrap(),
        b"4"
    );
    assert!(server.is_confirmed());
    assert_eq!(
        opened(&key, &mut server, Role::Client, &first).unwrap(),
        b"1"
    );
}

/// A recorded session can be started again, but does not continue and is never confirmed.
#[test]
fn a_recording_does_not_go_on() {
    let (key, mut client, mut server) = pair(SessionCipher::Aes128Gcm);
    let bound = sealed(&mut client, b"pay twice");
    let answer = sealed(&mut server, b"done");
    // `pair` draws the same client id, so its first packet is that of the recording.
    let mut recorded = key
        .connect(SessionCipher::Aes128Gcm, &mut Counting(1))
        .unwrap();
    let first = sealed(&mut recorded, b"first");
    let (mut again, _) = accepted(&key, &first, 77).unwrap();
    assert_eq!(
        opened(&key, &mut again, Role::Client, &bound),
        Err(ProtocolError::Unauthentic)
    );
    assert!(!again.is_confirmed());
    assert_eq!(
        accepted(&key, &bound, 77).unwrap_err(),
        ProtocolError::Unauthentic
    );
    // A client does not accept an old answer either.
    let mut fresh = key
        .connect(SessionCipher::Aes128Gcm, &mut Counting(9))
        .unwrap();
    assert_eq!(
        opened(&key, &mut fresh, Role::Server, &answer),
        Err(ProtocolError::Unauthentic)
    );
    assert!(!fresh.is_confirmed());
}

#[test]
fn nothing_is_reflected_or_crosses_sessions() {
    let (key, mut client, mut server) = pair(SessionCipher::ChaCha20Poly1305);
    let up = sealed(&mut client, b"up");
    let down = sealed(&mut server, b"down");
    for from in [Role::Client, Role::Server] {
        assert_eq!(
            opened(&key, &mut client, from, &up),
            Err(ProtocolError::Unauthentic)
        );
        assert_eq!(
            opened(&key, &mut server, from, &down),
            Err(ProtocolError::Unauthentic)
        );
    }
    let mut other = key
        .connect(SessionCipher::ChaCha20Poly1305, &mut Counting(5))
        .unwrap();
    let stray = sealed(&mut other, b"stray");
    assert_eq!(
        opened(&key, &mut server, Role::Client, &stray),
        Err(ProtocolError::Unauthentic)
    );
    let wrong = SessionKey::new(&[1; 32]).unwrap();
    assert_eq!(
        accepted(&wrong, &stray, 3).unwrap_err(),
        ProtocolError::Unauthentic
    );
    assert!(accepted(&key, &stray, 3).is_ok());
}

#[test]
fn every_flipped_bit_is_refused_and_changes_nothing() {
    for cipher in CIPHERS {
        let (key, mut client, mut server) = pair(cipher);
        let bound = sealed(&mut client, b"some text");
        let mut newcomer = key.connect(cipher, &mut Counting(40)).unwrap();
        let first = sealed(&mut newcomer, b"first");
        for bit in 0..bound.len() * 8 {
            let mut bad = bound.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let why = opened(&key, &mut server, Role::Client, &bad).unwrap_err();
            assert_eq!(why, ProtocolError::Unauthentic, "{bit}");
        }
        for bit in 0..first.len() * 8 {
            let mut bad = first.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                accepted(&key, &bad, 3).unwrap_err(),
                ProtocolError::Unauthentic
            );
        }
        for len in 0..bound.len() {
            assert!(opened(&key, &mut server, Role::Client, &bound[..len]).is_err());
        }
        assert_eq!(
            opened(&key, &mut server, Role::Client, &bound).unwrap(),
            b"some text"
        );
    }
}

#[test]
fn packets_without_room_are_refused() {
    let (_, mut client, _) = pair(SessionCipher::Aes128Gcm);
    for len in 0..32 {
        assert_eq!(client.seal(&mut vec![0; len]), Err(CryptoError::NoRoom));
    }
    assert!(client.seal(&mut [0; 32]).is_ok());
}

#[test]
fn debug_prints_no_secret() {
    let (key, client, _) = pair(SessionCipher::Aes128Gcm);
    assert_eq!(format!("{key:?}"), "SessionKey(***)");
    assert_eq!(
        format!("{client:?}"),
        "PacketSession { role: Client, cipher: Aes128Gcm, confirmed: true, .. }"
    );
}

proptest! {
    #[test]
    fn noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (key, mut client, mut server) = pair(SessionCipher::Aes128Gcm);
        prop_assert!(opened(&key, &mut server, Role::Client, &noise).is_err());
        prop_assert!(opened(&key, &mut client, Role::Server, &noise).is_err());
        prop_assert!(accepted(&key, &noise, 1).is_err());
    }
}
