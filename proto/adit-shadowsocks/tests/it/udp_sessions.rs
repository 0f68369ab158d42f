//! State that outlasts a session, and state shared by listeners with one key.

use std::sync::Arc;

use adit_shadowsocks::udp::{ClientSession, HEADROOM, ServerOpener, SessionRegistry, TAILROOM};
use adit_shadowsocks::{Key, Method, ProcessStart, RestartPolicy, Users};
use adit_wire::{ProtocolError, UnixTime};

use crate::support::{NOW, Seeded, key, new_opener, new_session, target};

fn request(client: &mut ClientSession, now: UnixTime) -> Vec<u8> {
    let mut buf = [0; HEADROOM + 4 + TAILROOM];
    let at = HEADROOM..HEADROOM + 4;
    let to = target();
    let range = client.seal(&mut buf, at, &to, now, &mut Seeded(8));
    buf[range.unwrap()].to_vec()
}

/// True if a packet starts a session.
fn open(server: &mut ServerOpener, packet: &[u8], now: UnixTime) -> Result<bool, ProtocolError> {
    let opened = server.open_packet(&mut packet.to_vec(), now);
    opened.map(|incoming| incoming.new)
}

fn sharing(key: &Key, book: &Arc<SessionRegistry>) -> ServerOpener {
    ServerOpener::with_registry(&Users::with_single_key(key.clone()), book.clone())
}

#[test]
fn a_forgotten_session_goes_on_behind_its_highest_packet() {
    for method in [Method::Blake3Aes128Gcm, Method::Blake3ChaCha20Poly1305] {
        let key = key(method);
        let mut client = new_session(&key, &mut Seeded(1));
        let mut server = new_opener(&key);
        let packets: Vec<_> = (0..30).map(|_| request(&mut client, NOW)).collect();
        for packet in packets[..20].iter().step_by(2) {
            open(&mut server, packet, NOW).unwrap();
        }
        let session = server
            .open_packet(&mut packets[19].clone(), NOW)
            .unwrap()
            .session;
        server.forget_session(session.unwrap(), NOW);
        for packet in &packets[..20] {
            assert_eq!(open(&mut server, packet, NOW), Err(ProtocolError::Replayed));
        }
        assert_eq!(open(&mut server, &packets[25], NOW), Ok(true));
        assert_eq!(open(&mut server, &packets[22], NOW), Ok(false));
        assert_eq!(
            open(&mut server, &packets[19], NOW),
            Err(ProtocolError::Replayed)
        );
        assert_eq!(
            open(&mut server, &packets[22], NOW),
            Err(ProtocolError::Replayed)
        );
        // For as long as one of its packets may be valid: sent 30 s ahead of time, and received 30
        // s late.
        server.forget_session(session.unwrap(), NOW);
        let ahead = UnixTime(NOW.0 + 29);
        let last = request(&mut new_session(&key, &mut Seeded(1)), ahead);
        for at in [NOW, UnixTime(NOW.0 + 30), UnixTime(NOW.0 + 59)] {
            assert_eq!(open(&mut server, &last, at), Err(ProtocolError::Replayed));
        }
    }
}

#[test]
fn a_session_is_at_one_listener_of_its_key() {
    let key = key(Method::Blake3Aes256Gcm);
    let book = Arc::new(SessionRegistry::new(ProcessStart::new(
        NOW,
        RestartPolicy::Lenient,
    )));
    let (mut one, mut two) = (sharing(&key, &book), sharing(&key, &book));
    let mut client = new_session(&key, &mut Seeded(1));
    let packets: Vec<_> = (0..4).map(|_| request(&mut client, NOW)).collect();
    assert_eq!(open(&mut one, &packets[1], NOW), Ok(true));
    for packet in &packets {
        assert_eq!(open(&mut two, packet, NOW), Err(ProtocolError::Replayed));
    }
    assert_eq!(open(&mut one, &packets[0], NOW), Ok(false));
    // The state outlasts a listener that is closed.
    drop(one);
    assert_eq!(
        open(&mut two, &packets[1], NOW),
        Err(ProtocolError::Replayed)
    );
    assert_eq!(open(&mut two, &packets[2], NOW), Ok(true));
}

#[test]
fn sec_r3_no_session_begins_with_what_is_older_than_the_process() {
    let key = key(Method::Blake3Aes128Gcm);
    for (restart, refused) in [
        (RestartPolicy::Strict, true),
        (RestartPolicy::Lenient, false),
    ] {
        for (stamp, now) in [(0, 0), (0, 30), (-20, 5)] {
            let at = |seconds: i64| UnixTime(NOW.0.checked_add_signed(seconds).unwrap());
            let book = Arc::new(SessionRegistry::new(ProcessStart::new(NOW, restart)));
            let mut server = sharing(&key, &book);
            let mut client = new_session(&key, &mut Seeded(1));
            let old = request(&mut client, at(stamp));
            let opened = open(&mut server, &old, at(now));
            assert_eq!(
                opened == Err(ProtocolError::Replayed),
                refused,
                "{stamp} {now}"
            );
            let fresh = request(&mut client, at(now + 1));
            assert_eq!(open(&mut server, &fresh, at(now)), Ok(refused));
        }
    }
}
