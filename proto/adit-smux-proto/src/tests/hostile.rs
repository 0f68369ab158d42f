//! Peers that violate the protocol, or abuse it.

use adit_wire::{ProtocolError, Time};
use proptest::prelude::*;

use super::{START, events, frame, output, session};
use crate::{Config, Event, OpenError, Role, Session, StreamError, StreamId, Version};

fn server(change: impl Fn(&mut Config)) -> Session {
    let mut config = Config::new(Version::V2, Role::Server);
    change(&mut config);
    Session::new(config, START).unwrap()
}

#[test]
fn a_protocol_error_ends_the_session() {
    for (bytes, what) in [
        (frame(1, 0, 3, &[]), "smux version"),
        (frame(2, 5, 3, &[]), "smux command"),
        (frame(2, 0, 3, b"x"), "smux frame length"),
        (frame(2, 4, 3, &[0; 7]), "smux frame length"),
    ] {
        let mut server = server(|_| {});
        assert_eq!(
            server.handle_input(START, &bytes),
            Err(ProtocolError::Malformed(what))
        );
        let good = frame(2, 3, 0, &[]);
        assert_eq!(
            server.handle_input(START, &good),
            Err(ProtocolError::Malformed(what))
        );
        assert_eq!(server.open(), Err(OpenError::SessionFailed));
    }
}

#[test]
fn frames_of_no_stream_are_skipped() {
    let mut server = server(|_| {});
    let mut wire = frame(2, 2, 7, &[0; 5000]);
    wire.extend(frame(2, 1, 7, &[]));
    wire.extend(frame(2, 4, 7, &[0xff; 8]));
    wire.extend(frame(2, 0, 9, &[]));
    wire.extend(frame(2, 0, 9, &[]));
    wire.extend(frame(2, 2, 9, &[]));
    wire.extend(frame(2, 1, 9, &[]));
    wire.extend(frame(2, 1, 9, &[]));
    wire.extend(frame(2, 2, 9, b"behind its end"));
    assert_eq!(server.handle_input(START, &wire), Ok(wire.len()));
    let id = StreamId(9);
    assert_eq!(
        events(&mut server),
        [Event::Opened(id), Event::Finished(id)]
    );
    assert_eq!((server.unread_bytes, server.stream_count()), (0, 1));
    assert_eq!((server.accept(), server.accept()), (Some(id), None));
}

#[test]
fn a_peer_cannot_have_read_what_was_not_sent() {
    let mut client = session(Version::V2, Role::Client);
    let id = client.open().unwrap();
    client.write(id, b"four").unwrap();
    output(&mut client);
    let update = |consumed: u32| frame(2, 4, 3, &[consumed.to_le_bytes(), [0, 0, 1, 0]].concat());
    client.handle_input(START, &update(4)).unwrap();
    assert_eq!(events(&mut client), []);
    client.write(id, b"more").unwrap();
    client.handle_input(START, &update(5)).unwrap();
    assert_eq!(events(&mut client), [Event::Failed(id)]);
    assert_eq!(client.write(id, b"x"), Err(StreamError::Failed));
    assert_eq!(client.direct_capacity(id), Err(StreamError::Failed));
    assert_eq!(output(&mut client), b"", "nothing more is sent on it");
    client.close(id);
    assert_eq!(output(&mut client), frame(2, 1, 3, &[]));
    assert_eq!(client.stream_count(), 0);
}

#[test]
fn streams_beyond_the_limit_are_ended_at_once() {
    let mut server = server(|config| config.max_streams = 2);
    let wire: Vec<u8> = (0..4).flat_map(|n| frame(2, 0, 3 + 2 * n, &[])).collect();
    assert_eq!(server.handle_input(START, &wire), Ok(wire.len()));
    let refusals = [frame(2, 1, 7, &[]), frame(2, 1, 9, &[])].concat();
    assert_eq!(output(&mut server), refusals);
    assert_eq!(server.stream_count(), 2);

    let mut client = session(Version::V2, Role::Client);
    assert_eq!(client.handle_input(START, &frame(2, 0, 2, &[])), Ok(8));
    assert_eq!(
        output(&mut client),
        frame(2, 1, 2, &[]),
        "a client accepts none"
    );
}

#[test]
fn a_flood_of_streams_stops_at_what_is_accepted() {
    let mut server = server(|config| config.backlog = 10);
    let wire: Vec<u8> = (0..100).flat_map(|n| frame(2, 0, 3 + 2 * n, &[])).collect();
    assert_eq!(server.handle_input(START, &wire), Ok(80));
    assert!(!server.wants_input());
    for n in 0..10 {
        let id = server.accept().unwrap();
        assert_eq!(id.get(), 3 + 2 * n);
        server.close(id);
    }
    assert_eq!(server.handle_input(START, &wire[80..]), Ok(80));
    assert_eq!(server.stream_count(), 20, "their ends are not sent yet");
    assert_eq!(output(&mut server).len(), 80);
    assert_eq!(server.stream_count(), 10);
    // Refusals that cannot be sent stop it as well.
    let mut client = session(Version::V2, Role::Client);
    let wire: Vec<u8> = (1..2000).flat_map(|n| frame(2, 0, 2 * n, &[])).collect();
    assert_eq!(client.handle_input(START, &wire), Ok(1024 * 8));
    output(&mut client);
    assert!(client.wants_input());
}

#[test]
fn frames_without_effect_are_counted() {
    let update = [1, 0, 0, 0, 0, 0, 4, 0];
    for useless in [
        frame(2, 3, 0, &[]),
        frame(2, 2, 3, &[]),
        frame(2, 0, 3, &[]),
        frame(2, 4, 3, &update),
    ] {
        let mut server = server(|_| {});
        let start = [frame(2, 0, 3, &[]), frame(2, 2, 3, b"hi")].concat();
        server.handle_input(START, &start).unwrap();
        let id = server.accept().unwrap();
        server.write(id, b"!").unwrap();
        output(&mut server);
        let first = frame(2, 4, 3, &update);
        server.handle_input(START, &first).unwrap();
        for _ in 0..1000 {
            assert_eq!(server.handle_input(START, &useless), Ok(useless.len()));
        }
        assert!(matches!(
            server.handle_input(START, &useless),
            Err(ProtocolError::Exhausted(_))
        ));
    }
}

#[test]
fn numbers_of_the_other_end_are_passed_over() {
    let mut server = server(|_| {});
    server.handle_input(START, &frame(2, 0, 2, &[])).unwrap();
    assert_eq!(server.open().map(StreamId::get), Ok(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_frames_are_handled(
        frames in proptest::collection::vec((0u8..6, 0u32..12, proptest::collection::vec(any::<u8>(), 0..20), 0u8..9), 0..200),
        split in 1usize..50, v2 in any::<bool>(),
    ) {
        let version = if v2 { Version::V2 } else { Version::V1 };
        let mut config = Config::new(version, Role::Server);
        (config.max_streams, config.backlog) = (5, 3);
        (config.session_buffer, config.stream_buffer) = (200, 100);
        let mut server = Session::new(config, START).unwrap();
        let mut now = 0;
        let mut wire = Vec::new();
        for (command, id, body, act) in &frames {
            let body = match command { 0 | 1 | 3 => &[], 4 if body.len() >= 8 => &body[..8], _ => &body[..] };
            wire.extend(frame(version.number(), *command, *id, body));
            if *act == 0 { wire.push(*command); }
        }
        let mut rest = &wire[..];
        for (_, id, body, act) in frames.iter().cycle().take(600) {
            let now_at = Time(now);
            now += 1000;
            let Ok(used) = server.handle_input(now_at, &rest[..rest.len().min(split)]) else { break };
            rest = &rest[used..];
            prop_assert!(server.unread_bytes < 200 + 65_536 && server.stream_count() <= 5);
            let id = StreamId(*id);
            match act {
                1 => { server.accept(); }
                2 => { let _ = server.write(id, body); }
                3 => { let _ = server.consume(id, body.len()); }
                4 => { let _ = server.close_write(id); }
                5 => server.close(id),
                6 => { let _ = server.open(); }
                7 => { server.poll_output(&mut [0; 40]); }
                _ => { events(&mut server); }
            }
        }
        prop_assert!(server.open().is_ok() || server.failure.is_some() || server.stream_count() == 5);
    }
}
