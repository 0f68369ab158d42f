//! Windows, clocks and session changes over UDP.

use adit_shadowsocks::udp::{
    ClientSession, HEADROOM, MAX_SESSIONS, ServerOpener, ServerSealer, TAILROOM,
};
use adit_shadowsocks::{Edition, Key, Method};
use adit_wire::{FixedEntropy, ProtocolError, UnixTime};

use crate::support::{NOW, Seeded, key, new_opener, new_session, target};

fn methods_2022() -> impl Iterator<Item = Method> {
    Method::ALL
        .into_iter()
        .filter(|m| m.edition() == Edition::Aead2022)
}

fn request(client: &mut ClientSession, now: UnixTime) -> Vec<u8> {
    let mut buf = [0; HEADROOM + 4 + TAILROOM];
    let at = HEADROOM..HEADROOM + 4;
    let range = client
        .seal(&mut buf, at, &target(), now, &mut Seeded(8))
        .unwrap();
    buf[range].to_vec()
}

fn answer(sealer: &mut ServerSealer, now: UnixTime) -> Vec<u8> {
    let mut buf = [0; HEADROOM + 4 + TAILROOM];
    let at = HEADROOM..HEADROOM + 4;
    let range = sealer
        .seal(&mut buf, at, &target(), now, &mut Seeded(8))
        .unwrap();
    buf[range].to_vec()
}

fn open(server: &mut ServerOpener, packet: &[u8], now: UnixTime) -> Result<bool, ProtocolError> {
    server
        .open_packet(&mut packet.to_vec(), now)
        .map(|incoming| incoming.new)
}

/// SEC-R5: any order within the window, each packet once; a refused packet has no effect.
#[test]
fn each_packet_once_in_any_order() {
    for method in methods_2022() {
        let key = key(method);
        let mut client = new_session(&key, &mut Seeded(1));
        let mut server = new_opener(&key);
        let packets: Vec<_> = (0..40).map(|_| request(&mut client, NOW)).collect();
        let late = UnixTime(NOW.0 + 31);
        assert_eq!(
            open(&mut server, &packets[39], late),
            Err(ProtocolError::Clock { skew: -31 })
        );
        assert_eq!(server.session_count(), 0);
        assert_eq!(open(&mut server, &packets[39], NOW), Ok(true));
        assert_eq!(
            open(&mut server, &packets[20], late),
            Err(ProtocolError::Clock { skew: -31 })
        );
        for packet in &packets[..39] {
            assert_eq!(open(&mut server, packet, NOW), Ok(false), "{method}");
        }
        for packet in &packets {
            assert_eq!(
                open(&mut server, packet, NOW),
                Err(ProtocolError::Replayed),
                "{method}"
            );
        }
        assert_eq!(server.session_count(), 1);
    }
}

#[test]
fn both_sides_judge_the_clock() {
    for method in methods_2022() {
        let key = key(method);
        for base in [NOW, UnixTime(100), UnixTime(u64::MAX - 100)] {
            for (ahead, ok) in [
                (0, true),
                (30, true),
                (-30, true),
                (31, false),
                (-31, false),
            ] {
                let now = UnixTime(base.0.saturating_add_signed(-ahead));
                let mut client = new_session(&key, &mut Seeded(1));
                let mut server = new_opener(&key);
                let packet = request(&mut client, base);
                let opened = open(&mut server, &packet, now);
                assert_eq!(opened.is_ok(), ok, "{method} {base:?} {ahead}");
                let session = server
                    .open_packet(&mut request(&mut client, now), now)
                    .unwrap()
                    .session;
                let mut sealer = server.create_sealer(session, &mut Seeded(2)).unwrap();
                let back = client.open(&mut answer(&mut sealer, base), now);
                assert_eq!(back.is_ok(), ok, "{method} {base:?} {ahead}");
            }
        }
    }
}

/// Opens the client's session on a server that has just started and returns its sealer.
fn restarted(key: &Key, client: &mut ClientSession, seed: u64, now: UnixTime) -> ServerSealer {
    let mut server = new_opener(key);
    let session = server
        .open_packet(&mut request(client, now), now)
        .unwrap()
        .session;
    server.create_sealer(session, &mut Seeded(seed)).unwrap()
}

/// SEC-R5: the previous session stays valid; a third within a minute is refused.
#[test]
fn a_client_follows_a_restarted_server_once_a_minute() {
    for method in methods_2022() {
        let key = key(method);
        let mut client = new_session(&key, &mut Seeded(1));
        let mut one = restarted(&key, &mut client, 10, NOW);
        let mut two = restarted(&key, &mut client, 20, NOW);
        let mut three = restarted(&key, &mut client, 30, NOW);
        let early = answer(&mut one, NOW);
        assert!(client.open(&mut early.clone(), NOW).is_ok());
        assert!(
            client.open(&mut answer(&mut two, NOW), NOW).is_ok(),
            "the first change"
        );
        assert!(
            client.open(&mut answer(&mut one, NOW), NOW).is_ok(),
            "the previous session"
        );
        assert_eq!(
            client.open(&mut early.clone(), NOW),
            Err(ProtocolError::Replayed)
        );
        let at = |s: u64| UnixTime(NOW.0 + s);
        for s in [0, 30, 60] {
            let refused = client.open(&mut answer(&mut three, at(s)), at(s));
            assert!(
                matches!(refused, Err(ProtocolError::Malformed(_))),
                "{method} {s}"
            );
        }
        assert!(client.open(&mut answer(&mut three, at(61)), at(61)).is_ok());
        assert!(client.open(&mut answer(&mut two, at(61)), at(61)).is_ok());
        let oldest = client.open(&mut answer(&mut one, at(61)), at(61));
        assert!(oldest.is_err(), "{method}: two are kept, not three");
    }
}

#[test]
fn answers_to_another_session_are_refused() {
    for method in methods_2022() {
        let key = key(method);
        let mut me = new_session(&key, &mut Seeded(1));
        let mut other = new_session(&key, &mut Seeded(2));
        let mut sealer = restarted(&key, &mut other, 3, NOW);
        let packet = answer(&mut sealer, NOW);
        let refused = me.open(&mut packet.clone(), NOW);
        assert_eq!(
            refused,
            Err(ProtocolError::Malformed("packet: answers another session"))
        );
        assert!(other.open(&mut packet.clone(), NOW).is_ok());
    }
}

/// SEC-R6: a packet reflected to its sender.
#[test]
fn reflections_are_refused() {
    for method in methods_2022() {
        let key = key(method);
        let mut client = new_session(&key, &mut Seeded(1));
        let packet = request(&mut client, NOW);
        let back = client.open(&mut packet.clone(), NOW);
        assert_eq!(
            back,
            Err(ProtocolError::Malformed("packet type")),
            "{method}"
        );
        let mut server = new_opener(&key);
        let session = server
            .open_packet(&mut packet.clone(), NOW)
            .unwrap()
            .session;
        let mut sealer = server.create_sealer(session, &mut Seeded(2)).unwrap();
        let back = server.open_packet(&mut answer(&mut sealer, NOW), NOW);
        assert_eq!(
            back,
            Err(ProtocolError::Malformed("packet type")),
            "{method}"
        );
    }
}

/// SEC-C3: every packet has its own nonce or salt, in both directions.
#[test]
fn no_packet_begins_like_another() {
    for method in Method::ALL.into_iter().filter(|m| m.salt_len() > 0) {
        let key = key(method);
        let front = method.salt_len().min(16);
        let mut rng = Seeded(1);
        let mut client = new_session(&key, &mut rng);
        let mut server = new_opener(&key);
        let session = server
            .open_packet(&mut request(&mut client, NOW), NOW)
            .unwrap()
            .session;
        let mut sealer = server.create_sealer(session, &mut rng).unwrap();
        let mut starts = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let at = HEADROOM..HEADROOM + 4;
            let mut up = [0; HEADROOM + 4 + TAILROOM];
            let mut down = up;
            let range = client
                .seal(&mut up, at.clone(), &target(), NOW, &mut rng)
                .unwrap();
            starts.insert(up[range][..front].to_vec());
            let range = sealer
                .seal(&mut down, at, &target(), NOW, &mut rng)
                .unwrap();
            starts.insert(down[range][..front].to_vec());
        }
        assert_eq!(starts.len(), 100, "{method}");
    }
}

#[test]
fn session_zero_is_never_chosen() {
    for method in methods_2022() {
        let key = key(method);
        let mut zeros = FixedEntropy::default();
        let mut client = new_session(&key, &mut zeros);
        let mut server = new_opener(&key);
        let incoming = server
            .open_packet(&mut request(&mut client, NOW), NOW)
            .unwrap();
        assert_eq!(incoming.session, Some(1));
    }
}

#[test]
fn sessions_are_known_until_forgotten() {
    let key = key(Method::Blake3Aes128Gcm);
    let mut client = new_session(&key, &mut Seeded(1));
    let mut server = new_opener(&key);
    assert!(server.create_sealer(Some(1), &mut Seeded(2)).is_none());
    assert!(server.create_sealer(None, &mut Seeded(2)).is_none());
    let incoming = server
        .open_packet(&mut request(&mut client, NOW), NOW)
        .unwrap();
    let session = incoming.session.unwrap();
    let mut sealer = server.create_sealer(Some(session), &mut Seeded(2)).unwrap();
    server.forget_session(session, NOW);
    assert_eq!(server.session_count(), 0);
    assert!(
        server
            .create_sealer(Some(session), &mut Seeded(2))
            .is_none()
    );
    assert!(client.open(&mut answer(&mut sealer, NOW), NOW).is_ok());
}

#[test]
fn the_table_of_sessions_is_bounded() {
    let key = key(Method::Blake3ChaCha20Poly1305);
    let mut server = new_opener(&key);
    let mut first = None;
    for seed in 0..=MAX_SESSIONS as u64 {
        let id = FixedEntropy::new((seed + 1).to_be_bytes());
        let mut client = new_session(&key, &mut id.clone());
        let opened = open(&mut server, &request(&mut client, NOW), NOW);
        if seed < MAX_SESSIONS as u64 {
            assert_eq!(opened, Ok(true));
        } else {
            assert_eq!(
                opened,
                Err(ProtocolError::Exhausted("the table of UDP sessions"))
            );
        }
        first.get_or_insert(client);
    }
    let known = open(&mut server, &request(&mut first.unwrap(), NOW), NOW);
    assert_eq!(known, Ok(false), "a full table serves its sessions");
}
