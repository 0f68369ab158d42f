//! A peer that violates the protocol. Failures of other implementations have tests here.

use super::*;

#[test]
fn window_overflow() {
    let (mut server, id) = server_with_session(1, 0xffff_fff0);
    let adjust = |more| numbers(msg::CHANNEL_WINDOW_ADJUST, &[0, more]);
    assert_eq!(
        server.handle_input(NOW, &adjust(15)),
        Ok(HandledInput::Done)
    );
    assert_eq!(server.send_capacity(id), 32768);
    assert!(matches!(
        fails(&mut server, &adjust(1)),
        SshError::TooMuch { .. }
    ));
}

#[test]
fn window_and_packet_are_kept() {
    let limits = ConnectionLimits {
        window: 100,
        max_packet: 60,
        ..ConnectionLimits::default()
    };
    for (sizes, fine) in [(&[61][..], 0), (&[60, 41], 1), (&[60, 40, 1], 2)] {
        let mut server = Connection::new(Role::Server, limits.clone());
        let _ = server.handle_input(NOW, &open_session(1, 9, 9)).unwrap();
        let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
            panic!("nothing was opened");
        };
        server.confirm_open(channel).unwrap();
        for size in &sizes[..fine] {
            assert!(server.handle_input(NOW, &data(0, &vec![0; *size])).is_ok());
        }
        let why = fails(&mut server, &data(0, &vec![0; sizes[fine]]));
        assert!(matches!(why, SshError::TooMuch { .. }));
    }
}

/// A write larger than every window ends with the bytes that fit.
#[test]
fn window_zero_and_huge_write() {
    let (mut server, id) = server_with_session(1, 100_000);
    let huge = vec![0; 1 << 20];
    let mut sent = 0;
    while let Some(payload) = send(&mut server, id, DataKind::Stdout, &huge) {
        sent += payload.len() - 9;
        assert!(payload.len() <= 9 + 32768 && sent <= 100_000);
    }
    assert_eq!((sent, server.send_capacity(id)), (100_000, 0));
    let mut out = Vec::new();
    for len in [0, 1, usize::MAX] {
        let why = server.begin_data(id, DataKind::Stdout, len, &mut out);
        assert_eq!((why, out.len()), (Err(ChannelCallError::NoRoom), 0));
    }
    // A packet size of zero would make this end wait forever.
    let bad = open_session(2, 1, 0);
    assert!(matches!(fails(&mut server, &bad), SshError::Malformed(_)));
}

#[test]
fn reply_unsolicited() {
    for number in [msg::REQUEST_SUCCESS, msg::REQUEST_FAILURE] {
        let why = fails(&mut server(), &[number]);
        assert_eq!(why, SshError::Unexpected(number));
    }
    for number in [
        msg::CHANNEL_SUCCESS,
        msg::CHANNEL_FAILURE,
        msg::CHANNEL_OPEN_CONFIRMATION,
        msg::CHANNEL_OPEN_FAILURE,
    ] {
        let (mut server, _) = server_with_session(1, 10);
        let why = fails(&mut server, &numbers(number, &[0, 1, 1, 1]));
        assert!(matches!(
            why,
            SshError::Unexpected(_) | SshError::Malformed(_)
        ));
        let (mut server, _) = server_with_session(1, 10);
        let why = fails(&mut server, &numbers(number, &[0]));
        assert!(matches!(
            why,
            SshError::Unexpected(_) | SshError::Malformed(_)
        ));
    }
    // One more answer than there are requests.
    let (mut server, id) = server_with_session(1, 10);
    server
        .send_request(id, &SshChannelRequest::Break(1), WantReply::Yes)
        .unwrap();
    let answer = numbers(msg::CHANNEL_FAILURE, &[0]);
    assert_eq!(server.handle_input(NOW, &answer), Ok(HandledInput::Done));
    let why = fails(&mut server, &answer);
    assert_eq!(why, SshError::Unexpected(msg::CHANNEL_FAILURE));
}

/// A channel that is only requested cannot be used.
#[test]
fn nothing_comes_before_the_confirmation() {
    for number in [
        msg::CHANNEL_DATA,
        msg::CHANNEL_EXTENDED_DATA,
        msg::CHANNEL_WINDOW_ADJUST,
        msg::CHANNEL_EOF,
        msg::CHANNEL_CLOSE,
        msg::CHANNEL_REQUEST,
        msg::CHANNEL_SUCCESS,
    ] {
        let mut client = client();
        client.open_channel(&ChannelKind::Session).unwrap();
        let payload = numbers(number, &[0]);
        assert_eq!(fails(&mut client, &payload), SshError::Unexpected(number));
        let mut server = server();
        let _ = server.handle_input(NOW, &open_session(4, 1, 1)).unwrap();
        assert_eq!(fails(&mut server, &payload), SshError::Unexpected(number));
    }
}

#[test]
fn pty_modes() {
    let pty = |modes: &[u8]| {
        let mut fields = Vec::new();
        fields.put_string(b"xterm");
        TerminalSize::default().encode(&mut fields);
        fields.put_string(modes);
        channel_request(0, "pty-req", false, &fields)
    };
    let modes = |end: &mut Connection| match events(end).pop() {
        Some(ConnectionEvent::Request {
            request: SshChannelRequest::Pty(pty),
            ..
        }) => pty.modes,
        other => panic!("{other:?}"),
    };
    // Every number many times, and no end.
    let many: Vec<u8> = (0..10_000u32)
        .flat_map(|n| {
            let [.., mode] = (1 + n % 159).to_be_bytes();
            let mut entry = vec![mode];
            entry.put_u32(n);
            entry
        })
        .collect();
    let (mut server, _) = server_with_session(1, 10);
    let _ = server.handle_input(NOW, &pty(&many)).unwrap();
    let found = modes(&mut server);
    assert_eq!(found.iter().count(), 159);
    assert_eq!((found.get(142), found.get(160)), (Some(9999), None));
    // Undefined modes end the parsing; truncated ones are an error.
    let _ = server
        .handle_input(NOW, &pty(&[1, 0, 0, 0, 3, 160, 1]))
        .unwrap();
    assert_eq!(modes(&mut server).iter().collect::<Vec<_>>(), [(1, 3)]);
    let why = fails(&mut server, &pty(&[1, 0, 0, 0]));
    assert_eq!(why, SshError::Malformed("terminal modes"));
}

#[test]
fn nothing_comes_behind_the_end() {
    for (end, then, fine) in [
        (msg::CHANNEL_EOF, data(0, b"x"), false),
        (msg::CHANNEL_EOF, numbers(msg::CHANNEL_EOF, &[0]), true),
        (
            msg::CHANNEL_EOF,
            channel_request(0, "exit-status", false, &[0; 4]),
            true,
        ),
        (msg::CHANNEL_CLOSE, data(0, b"x"), false),
        (msg::CHANNEL_CLOSE, numbers(msg::CHANNEL_CLOSE, &[0]), false),
        (
            msg::CHANNEL_CLOSE,
            numbers(msg::CHANNEL_WINDOW_ADJUST, &[0, 1]),
            false,
        ),
    ] {
        // Once with data that was not consumed, so that the channel still exists.
        for held in [false, true] {
            let (mut server, _) = server_with_session(1, 10);
            if held {
                assert!(server.handle_input(NOW, &data(0, b"x")).is_ok());
            }
            let end = numbers(end, &[0]);
            assert_eq!(server.handle_input(NOW, &end), Ok(HandledInput::Done));
            assert_eq!(server.handle_input(NOW, &then).is_ok(), fine);
        }
    }
}

/// Messages in transit when the channel is closed are dropped, without an event or an answer.
#[test]
fn what_comes_behind_our_close_is_dropped() {
    let (mut server, id) = server_with_session(1, 10);
    server.close_channel(id);
    output(&mut server);
    for payload in [
        data(0, &[0; 30_000]),
        channel_request(0, "shell", true, &[]),
        numbers(msg::CHANNEL_WINDOW_ADJUST, &[0, 5]),
        numbers(msg::CHANNEL_EOF, &[0]),
    ] {
        assert_eq!(server.handle_input(NOW, &payload), Ok(HandledInput::Done));
    }
    assert!(events(&mut server).is_empty() && output(&mut server).is_empty());
    let close = numbers(msg::CHANNEL_CLOSE, &[0]);
    assert_eq!(server.handle_input(NOW, &close), Ok(HandledInput::Done));
    assert_eq!(events(&mut server), [ConnectionEvent::Closed(id)]);
    assert!(output(&mut server).is_empty(), "one CLOSE is enough");
    assert_eq!(server.channel_count(), 0);
}

#[test]
fn the_peers_numbers_are_its_own_and_single() {
    let (mut server, id) = server_with_session(7, 10);
    let again = open_session(7, 1, 1);
    server.close_channel(id);
    let close = numbers(msg::CHANNEL_CLOSE, &[0]);
    let _ = server.handle_input(NOW, &close).unwrap();
    assert_eq!(server.handle_input(NOW, &again), Ok(HandledInput::Done));
    assert!(matches!(fails(&mut server, &again), SshError::Malformed(_)));
    // Numbers that were not assigned.
    let (mut server, _) = server_with_session(7, 10);
    let why = fails(&mut server, &data(7, b"x"));
    assert_eq!(why, SshError::Malformed("channel number"));
}

#[test]
fn other_numbers_are_not_of_this_protocol() {
    let mut server = server();
    for number in (0..80).chain([83, 89, 101, 127, 192, 255]) {
        assert_eq!(
            server.handle_input(NOW, &[number]),
            Ok(HandledInput::Unknown)
        );
    }
    assert!(server.handle_input(NOW, &[]).is_err());
}
