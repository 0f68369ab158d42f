//! A peer that obeys the protocol, and sends excessive amounts of everything.

use super::*;

#[test]
fn reject_100k_channels() {
    let mut server = server();
    let _ = server.handle_input(
        NOW,
        &global_request("no-more-sessions@openssh.com", false, &[]),
    );
    while server.poll_event().is_some() {}
    let mut out = Vec::new();
    for n in 0..100_000u32 {
        let open = open_session(n, 1, 1);
        assert_eq!(server.handle_input(NOW, &open), Ok(HandledInput::Done));
        out.clear();
        assert!(server.poll_output(&mut out) && !server.poll_output(&mut out));
        assert_eq!(out.first(), Some(&msg::CHANNEL_OPEN_FAILURE));
    }
    assert_eq!((server.channel_count(), server.budget.given()), (0, 0));
    assert!(server.wants_input() && server.events.is_empty());
    // A driver that does not send the refusals is asked to stop reading, and then fails.
    let mut stopped = None;
    for n in 0..1_000_000u32 {
        if stopped.is_none() && !server.wants_input() {
            stopped = Some(n);
        }
        if server.handle_input(NOW, &open_session(n, 1, 1)).is_err() {
            assert!(stopped.is_some_and(|at| at < n));
            assert!(server.outbox.byte_len() <= (4 << 20) + 100);
            return;
        }
    }
    panic!("the refusals grow without end");
}

/// More channel requests than may be pending: the rest is refused, and events are bounded.
#[test]
fn openings_that_nobody_answers() {
    let mut server = server();
    for n in 0..1000 {
        let _ = server.handle_input(NOW, &open_session(n, 1, 1)).unwrap();
    }
    assert_eq!(
        (server.channel_count(), events(&mut server).len()),
        (128, 128)
    );
    let refusals = output(&mut server);
    assert_eq!(refusals.len(), 1000 - 128);
    let shortage = &[0, 0, 0, 4][..];
    assert!(refusals.iter().all(|r| r.get(5..9) == Some(shortage)));
}

#[test]
fn requests_that_nobody_answers() {
    for global in [false, true] {
        let (mut server, _) = server_with_session(1, 10);
        let request = match global {
            false => channel_request(0, "shell", true, &[]),
            true => global_request("x@example", true, &[]),
        };
        for _ in 0..128 {
            assert_eq!(server.handle_input(NOW, &request), Ok(HandledInput::Done));
            assert!(server.poll_event().is_some());
        }
        let why = fails(&mut server, &request);
        assert!(matches!(why, SshError::TooMuch { limit: 128, .. }));
    }
    // Local requests are bounded, too.
    let (mut server, id) = server_with_session(1, 10);
    let ask = |server: &mut Connection| {
        server.send_request(id, &SshChannelRequest::Shell, WantReply::Yes)
    };
    assert!((0..128).all(|_| ask(&mut server).is_ok()));
    assert_eq!(ask(&mut server), Err(ChannelCallError::TooMany));
    let ask = |server: &mut Connection| server.send_global_request(&GlobalRequest::KeepAlive);
    assert!((0..128).all(|_| ask(&mut server).is_ok()));
    assert_eq!(ask(&mut server), Err(ChannelCallError::TooMany));
}

/// Events that are not polled: the driver is asked to stop reading, then it fails.
#[test]
fn events_that_nobody_polls() {
    let (mut server, _) = server_with_session(1, 10);
    let value = vec![0; 30_000];
    let request = channel_request(0, "env", false, &{
        let mut fields = Vec::new();
        fields.put_string(b"A");
        fields.put_string(&value);
        fields
    });
    let taken = (0..1000).take_while(|_| server.handle_input(NOW, &request).is_ok());
    let taken = taken.count();
    assert!((100..200).contains(&taken) && !server.wants_input());
    while server.poll_event().is_some() {}
    assert!(server.wants_input());
}

/// Channels that open and close leave no uncounted bytes behind.
#[test]
fn closed_channels_count_until_their_bytes_are_consumed() {
    let limits = ConnectionLimits {
        channels: 4,
        ..ConnectionLimits::default()
    };
    let mut server = Connection::new(Role::Server, limits);
    let mut held = Vec::new();
    for n in 0..20 {
        let _ = server.handle_input(NOW, &open_session(n, 1, 1)).unwrap();
        let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
            break;
        };
        server.confirm_open(channel).unwrap();
        let bytes = data(channel.number, &[0; 1000]);
        assert!(matches!(
            server.handle_input(NOW, &bytes),
            Ok(HandledInput::Data { .. })
        ));
        let close = numbers(msg::CHANNEL_CLOSE, &[channel.number]);
        let _ = server.handle_input(NOW, &close).unwrap();
        while server.poll_event().is_some() {}
        held.push(channel);
    }
    assert_eq!((held.len(), server.channel_count()), (4, 4));
    server.consume_data(held[0], 999, NOW);
    assert_eq!(server.channel_count(), 4);
    server.consume_data(held[0], 1, NOW);
    server.close_channel(held[1]);
    assert_eq!(server.channel_count(), 2);
}

/// Messages without data use no window: a hundred thousand leave nothing behind.
#[test]
fn empty_data_flood() {
    let (mut server, id) = server_with_session(1, 10);
    let stderr = |bytes: &[u8]| {
        message(msg::CHANNEL_EXTENDED_DATA, |out| {
            out.put_u32(0);
            out.put_u32(1);
            out.put_string(bytes);
        })
    };
    let given = server.budget.given();
    for _ in 0..50_000 {
        for payload in [data(0, b""), stderr(b"")] {
            assert_eq!(server.handle_input(NOW, &payload), Ok(HandledInput::Done));
        }
    }
    assert_eq!((events(&mut server), output(&mut server)), (vec![], vec![]));
    assert_eq!(server.budget.given(), given);
    let payload = data(0, b"x");
    let came = server.handle_input(NOW, &payload).unwrap();
    assert!(matches!(came, HandledInput::Data { channel, .. } if channel == id));
}

/// More host keys than a host may have, announced and requested, and lengths that claim them.
#[test]
fn host_keys_flood() {
    let keys = |count: usize| {
        let mut fields = Vec::new();
        (0..count).for_each(|_| fields.put_string(b"key"));
        fields
    };
    let told = |fields: &[u8]| global_request("hostkeys-00@openssh.com", false, fields);
    let asked = |fields: &[u8]| global_request("hostkeys-prove-00@openssh.com", true, fields);
    assert_eq!(
        client().handle_input(NOW, &told(&keys(64))),
        Ok(HandledInput::Done)
    );
    assert_eq!(
        server().handle_input(NOW, &asked(&keys(64))),
        Ok(HandledInput::Done)
    );
    for count in [65, 8000] {
        for why in [
            fails(&mut client(), &told(&keys(count))),
            fails(&mut server(), &asked(&keys(count))),
        ] {
            assert!(matches!(why, SshError::TooMuch { limit: 64, .. }), "{why}");
        }
    }
    let promise = fails(&mut client(), &told(&[0xff, 0xff, 0xff, 0xff]));
    assert!(matches!(promise, SshError::Malformed(_)));
    // A server receives no host keys, and a client has none to prove: nothing happens.
    let (mut wrong, mut way) = (server(), client());
    assert_eq!(
        wrong.handle_input(NOW, &told(&keys(1))),
        Ok(HandledInput::Done)
    );
    assert_eq!(
        way.handle_input(NOW, &asked(&keys(1))),
        Ok(HandledInput::Done)
    );
    assert_eq!((events(&mut wrong), events(&mut way)), (vec![], vec![]));
    assert_eq!(output(&mut way), [[msg::REQUEST_FAILURE]]);
}
