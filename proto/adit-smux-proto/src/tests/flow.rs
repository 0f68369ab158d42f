//! Windows, turns, ends and timers.

use core::time::Duration;

use adit_wire::Time;

use super::{START, events, frame, output, read_all, session, talk};
use crate::{
    Config, ConfigError, Event, FRAME_HEADER, MIN_OUTPUT, OpenError, ReadFront, Role, Session,
    StreamError, StreamId, Version,
};

fn pair(version: Version, change: impl Fn(&mut Config)) -> (Session, Session) {
    let make = |role| {
        let mut config = Config::new(version, role);
        change(&mut config);
        Session::new(config, START).unwrap()
    };
    (make(Role::Client), make(Role::Server))
}

/// Opens a stream at both ends.
fn stream(client: &mut Session, server: &mut Session) -> StreamId {
    let id = client.open().unwrap();
    talk(client, server);
    assert_eq!(server.accept(), Some(id));
    id
}

/// Writes as much as is accepted and can be sent.
fn flood(from: &mut Session, to: &mut Session, id: StreamId, mut left: usize) -> usize {
    let mut sent = 0;
    while left > 0 {
        let accepted = from.write(id, &vec![9; left.min(50_000)]).unwrap();
        let wire = output(from);
        assert_eq!(to.handle_input(START, &wire), Ok(wire.len()));
        if accepted == 0 {
            break;
        }
        sent += accepted;
        left -= accepted;
    }
    sent
}

#[test]
fn a_sender_stops_at_the_window_of_version_2() {
    let (mut client, mut server) = pair(Version::V2, |config| {
        config.stream_buffer = 100_000;
        config.send_buffer = 10_000;
    });
    let id = stream(&mut client, &mut server);
    let sent = flood(&mut client, &mut server, id, 1_000_000);
    assert_eq!(
        sent,
        262_144 + 10_000,
        "the first window, and the queued bytes"
    );
    assert_eq!(server.unread_bytes, 262_144);
    events(&mut client);
    assert_eq!(client.write(id, b"more"), Ok(0));
    assert_eq!(events(&mut client), []);
    // One byte read: the peer learns the real window, which is smaller.
    server.consume(id, 1).unwrap();
    talk(&mut client, &mut server);
    assert_eq!(server.unread_bytes, 262_143);
    // The rest read: it may send a whole window again.
    assert_eq!(read_all(&mut server, id).len(), 262_143);
    talk(&mut client, &mut server);
    assert_eq!(server.unread_bytes, 10_000);
    assert_eq!(events(&mut client), [Event::Writable(id)]);
    let sent = flood(&mut client, &mut server, id, 1_000_000);
    // Read in steps of 1,000, with an update for each eighth of the buffer, so for each 13,000: the
    // last reported are 260,001 of 262,144.
    let known = 1 + 20 * 13_000;
    assert_eq!(server.unread_bytes, known + 100_000 - 262_144);
    assert_eq!(sent, server.unread_bytes);
}

#[test]
fn a_session_stops_where_its_buffer_is_full() {
    for version in [Version::V1, Version::V2] {
        let (mut client, mut server) = pair(version, |config| {
            config.session_buffer = 20_000;
            config.stream_buffer = 10_000;
        });
        let [a, b] = [(); 2].map(|()| stream(&mut client, &mut server));
        assert_eq!(client.write(a, &[1; 30_000]), Ok(30_000));
        assert_eq!(client.write(b, b"behind it"), Ok(9));
        let wire = output(&mut client);
        let used = server.handle_input(START, &wire).unwrap();
        assert!(used < wire.len() && !server.wants_input());
        assert_eq!(server.unread_bytes, 3 * 8192 + 9);
        assert_eq!(server.handle_input(START, &wire[used..]), Ok(0));
        // Accepting no input does not indicate a dead peer.
        let late = Time(31_000_000);
        assert_eq!(server.handle_timeout(late), Ok(()));
        // A stream that is closed releases its space.
        server.close(a);
        assert!(server.wants_input());
        let rest = &wire[used..];
        assert_eq!(server.handle_input(late, rest), Ok(rest.len()));
        assert_eq!(read_all(&mut server, b), b"behind it");
        assert_eq!(server.unread_bytes, 0);
    }
}

#[test]
fn streams_take_turns() {
    let (mut client, mut server) = pair(Version::V1, |config| config.max_frame = 100);
    let ids = [(); 3].map(|()| stream(&mut client, &mut server));
    for id in ids {
        client.write(id, &[0; 250]).unwrap();
    }
    client.close_write(ids[1]).unwrap();
    let late = client.open().unwrap();
    let wire = output(&mut client);
    let mut rest = &wire[..];
    let mut order = Vec::new();
    while let [_, command, l0, l1, id, ..] = *rest {
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        order.push((command, u32::from(id), len));
        rest = &rest[FRAME_HEADER + len..];
    }
    let [a, b, c] = ids.map(StreamId::get);
    let expected = [
        (0, late.get(), 0),
        (2, a, 100),
        (2, b, 100),
        (2, c, 100),
        (2, a, 100),
        (2, b, 100),
        (2, c, 100),
        (2, a, 50),
        (2, b, 50),
        (2, c, 50),
        (1, b, 0),
    ];
    assert_eq!(order, expected);
}

#[test]
fn output_fits_into_what_there_is() {
    let (mut client, mut server) = pair(Version::V2, |_| {});
    let id = stream(&mut client, &mut server);
    client.write(id, &[5; 1000]).unwrap();
    assert_eq!(client.poll_output(&mut [0; FRAME_HEADER]), 0);
    assert!(client.wants_output());
    let mut out = [0; 100];
    assert_eq!(client.poll_output(&mut out), 100, "cut short");
    assert_eq!(out[2], 92);
    assert_eq!(server.handle_input(START, &out), Ok(100));
    client.write(id, &[5; 1]).unwrap();
    let mut out = [0; MIN_OUTPUT];
    for _ in 0..200 {
        let len = client.poll_output(&mut out);
        assert_eq!(server.handle_input(START, &out[..len]), Ok(len));
    }
    assert!(!client.wants_output());
    assert_eq!(read_all(&mut server, id).len(), 1001);
    // An update of 16 bytes fits exactly.
    assert_eq!(server.poll_output(&mut out), MIN_OUTPUT);
}

#[test]
fn frames_in_place() {
    for version in [Version::V1, Version::V2] {
        let (mut client, mut server) = pair(version, |config| config.max_frame = 60_000);
        let id = client.open().unwrap();
        let mut frame = vec![3; FRAME_HEADER + 60_000];
        assert_eq!(client.direct_capacity(id), Ok(0), "its opening is not sent");
        assert_eq!(client.seal_frame(id, &mut frame), Err(StreamError::TooLong));
        talk(&mut client, &mut server);
        assert_eq!(events(&mut client), [Event::Writable(id)]);
        for _ in 0..4 {
            assert_eq!(client.direct_capacity(id), Ok(60_000));
            client.seal_frame(id, &mut frame).unwrap();
            assert_eq!(server.handle_input(START, &frame), Ok(frame.len()));
        }
        let left = if version == Version::V1 {
            60_000
        } else {
            22_144
        };
        assert_eq!(client.direct_capacity(id), Ok(left));
        let cut = &mut frame[..FRAME_HEADER + left];
        client.seal_frame(id, cut).unwrap();
        assert_eq!(server.handle_input(START, cut), Ok(cut.len()));
        assert_eq!(
            client.seal_frame(id, &mut frame[..FRAME_HEADER]),
            Err(StreamError::TooLong)
        );
        assert_eq!(client.seal_frame(id, &mut []), Err(StreamError::TooLong));
        if version == Version::V2 {
            assert_eq!(client.direct_capacity(id), Ok(0));
        }
        assert_eq!(read_all(&mut server, id), vec![3; 240_000 + left]);
        talk(&mut client, &mut server);
        let writable = [Event::Writable(id)];
        assert_eq!(
            events(&mut client),
            writable[..usize::from(version == Version::V2)]
        );
        // Queued bytes are sent first.
        client.write(id, b"queued").unwrap();
        assert_eq!(client.direct_capacity(id), Ok(0));
        talk(&mut client, &mut server);
        assert_eq!(events(&mut client), writable);
        assert_eq!(client.direct_capacity(id), Ok(60_000));
    }
}

#[test]
fn each_side_ends_by_itself() {
    let (mut client, mut server) = pair(Version::V2, |_| {});
    let id = stream(&mut client, &mut server);
    client.write(id, b"question").unwrap();
    client.close_write(id).unwrap();
    assert_eq!(client.write(id, b"!"), Err(StreamError::Ended));
    talk(&mut client, &mut server);
    assert_eq!(
        events(&mut server),
        [Event::Opened(id), Event::Readable(id), Event::Finished(id)]
    );
    assert_eq!(server.front_bytes(id), Ok(ReadFront::Bytes(b"question")));
    assert_eq!(read_all(&mut server, id), b"question");
    assert_eq!(server.front_bytes(id), Ok(ReadFront::End));
    server.write(id, b"answer").unwrap();
    server.close_write(id).unwrap();
    talk(&mut client, &mut server);
    assert_eq!(read_all(&mut client, id), b"answer");
    assert_eq!(client.read(id, &mut [0; 4]), Ok(0));
    for session in [&mut client, &mut server] {
        session.close(id);
        assert_eq!(session.stream_count(), 0);
        assert_eq!(session.read(id, &mut [0]), Err(StreamError::Unknown));
        assert_eq!(session.front_bytes(id), Err(StreamError::Unknown));
        assert!(!session.wants_output());
    }
}

#[test]
fn what_was_written_is_sent_before_a_stream_is_gone() {
    let (mut client, mut server) = pair(Version::V1, |_| {});
    let [kept, dropped] = [(); 2].map(|()| client.open().unwrap());
    for id in [kept, dropped] {
        client.write(id, b"last words").unwrap();
    }
    client.close(kept);
    client.abort(dropped);
    assert_eq!(client.write(kept, b"!"), Err(StreamError::Unknown));
    talk(&mut client, &mut server);
    assert_eq!(client.stream_count(), 0);
    assert_eq!(read_all(&mut server, kept), b"last words");
    assert_eq!(read_all(&mut server, dropped), b"");
    assert_eq!(server.read(dropped, &mut [0]), Ok(0));
    // Data for a stream that is gone is dropped.
    server.write(kept, &[0; 1000]).unwrap();
    talk(&mut client, &mut server);
    assert_eq!((client.unread_bytes, events(&mut client)), (0, vec![]));
}

#[test]
fn writers_are_told_when_there_is_room() {
    let (mut client, mut server) = pair(Version::V1, |config| config.send_buffer = 1000);
    let id = stream(&mut client, &mut server);
    assert_eq!(client.write(id, &[0; 1500]), Ok(1000));
    assert_eq!(client.write(id, &[0; 500]), Ok(0));
    assert_eq!(events(&mut client), []);
    client.poll_output(&mut [0; 400]);
    assert_eq!(events(&mut client), [], "not for a little space");
    output(&mut client);
    assert_eq!(events(&mut client), [Event::Writable(id)]);
}

#[test]
fn silence_is_death() {
    let mut client = session(Version::V1, Role::Client);
    let mut now = START;
    for _ in 0..3 {
        now = client.poll_timeout().unwrap();
        if now < Time(30_000_000) {
            assert_eq!(client.handle_timeout(now), Ok(()));
            assert_eq!(output(&mut client), frame(1, 3, 0, &[]));
        }
    }
    assert_eq!(now, Time(30_000_000));
    let silent = client.handle_timeout(now).unwrap_err();
    assert_eq!(silent.0, Duration::from_secs(30));

    let mut client = session(Version::V1, Role::Client);
    client
        .handle_input(Time(29_000_000), &frame(1, 3, 0, &[]))
        .unwrap();
    assert_eq!(client.handle_timeout(Time(58_000_000)), Ok(()));
    assert!(client.handle_timeout(Time(59_000_000)).is_err());

    let mut config = Config::new(Version::V1, Role::Client);
    config.keepalive = None;
    let mut client = Session::new(config, START).unwrap();
    assert_eq!(client.poll_timeout(), None);
    assert_eq!(client.handle_timeout(Time(u64::MAX)), Ok(()));
    assert!(!client.wants_output());
}

#[test]
fn numbers_run_out() {
    let (mut client, _) = pair(Version::V1, |config| config.max_streams = 2);
    let first = client.open().unwrap();
    client.open().unwrap();
    assert_eq!(client.open(), Err(OpenError::TooMany));
    client.close(first);
    output(&mut client);
    client.skip_ids_to(u32::MAX - 2);
    assert_eq!(client.open().map(StreamId::get), Ok(u32::MAX));
    client.close(StreamId(u32::MAX));
    output(&mut client);
    for _ in 0..2 {
        assert_eq!(client.open(), Err(OpenError::Exhausted));
    }
}

#[test]
fn settings_are_checked() {
    type Change = fn(&mut Config);
    let changes: [(Change, ConfigError); 7] = [
        (|c| c.max_frame = 0, ConfigError::Zero),
        (|c| c.send_buffer = 0, ConfigError::Zero),
        (|c| c.max_streams = 0, ConfigError::Zero),
        (|c| c.stream_buffer = 1, ConfigError::StreamBuffer),
        (
            |c| c.stream_buffer = c.session_buffer + 1,
            ConfigError::StreamBuffer,
        ),
        (
            |c| c.session_buffer = (16 << 20) + 1,
            ConfigError::SessionBuffer,
        ),
        (
            |c| c.timeout = Duration::from_secs(9),
            ConfigError::Keepalive,
        ),
    ];
    for (change, why) in changes {
        let mut config = Config::new(Version::V2, Role::Server);
        change(&mut config);
        assert_eq!(Session::new(config, START).err(), Some(why));
    }
}
