//! The life cycle of channels and requests as required by the RFC.

use super::*;

#[test]
fn a_command_from_beginning_to_end() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    let exec = Request::Exec(b"date".to_vec());
    client.request(here, &exec, WantReply::Yes).unwrap();
    settle(&mut client, &mut server);
    let Some(Event::Request {
        channel,
        request,
        reply: Some(reply),
    }) = server.poll_event()
    else {
        panic!("no request");
    };
    assert_eq!((channel, request), (there, exec));
    server.answer(reply, true);
    assert_eq!(server.room(there), 0, "the answer goes first");
    settle(&mut client, &mut server);
    assert_eq!(
        events(&mut client),
        [Event::RequestDone {
            channel: here,
            ok: true
        }]
    );
    let payload = send(&mut server, there, Kind::Stdout, b"today").unwrap();
    assert!(matches!(
        client.handle_input(NOW, &payload),
        Ok(Handled::Data { .. })
    ));
    server.eof(there).unwrap();
    assert_eq!(server.eof(there), Err(CallError::Ended));
    let status = Request::ExitStatus(0);
    server.request(there, &status, WantReply::No).unwrap();
    server.close(there);
    assert_eq!(
        server.request(there, &status, WantReply::No),
        Err(CallError::Ended)
    );
    settle(&mut client, &mut server);
    assert_eq!(
        events(&mut client),
        [
            Event::Eof(here),
            Event::Request {
                channel: here,
                request: status,
                reply: None
            },
            Event::Closed(here)
        ]
    );
    assert_eq!(events(&mut server), [Event::Closed(there)]);
    assert_eq!(server.channels(), 0);
    assert_eq!(client.channels(), 1, "five bytes are not consumed");
    client.consumed(here, 5, NOW);
    assert_eq!((client.channels(), client.budget.given()), (0, 0));
    assert_eq!(client.room(here), 0);
    assert_eq!(client.eof(here), Err(CallError::Gone));
}

#[test]
fn half_close_leaves_the_other_way_open() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    client.eof(here).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(events(&mut server), [Event::Eof(there)]);
    assert_eq!((client.room(here), server.room(there)), (0, 32768));
    let payload = send(&mut server, there, Kind::Stdout, &[1; 9]).unwrap();
    assert!(matches!(
        client.handle_input(NOW, &payload),
        Ok(Handled::Data { .. })
    ));
}

/// A pending window adjustment is dropped once no more data can arrive.
#[test]
fn no_adjust_comes_behind_the_end() {
    for end in [msg::CHANNEL_EOF, msg::CHANNEL_CLOSE, 0] {
        let (mut server, id) = server_with_session(9, 100);
        for _ in 0..32 {
            let _ = server.handle_input(NOW, &data(0, &[0; 32768])).unwrap();
            server.consumed(id, 32768, NOW);
        }
        assert_eq!(server.adjusts.len(), 1);
        let last = match end {
            0 => {
                server.close(id);
                vec![numbers(msg::CHANNEL_CLOSE, &[9])]
            }
            msg::CHANNEL_EOF => {
                let _ = server.handle_input(NOW, &numbers(end, &[0])).unwrap();
                vec![]
            }
            _ => {
                let _ = server.handle_input(NOW, &numbers(end, &[0])).unwrap();
                vec![numbers(msg::CHANNEL_CLOSE, &[9])]
            }
        };
        assert_eq!(output(&mut server), last);
    }
}

#[test]
fn a_number_is_used_again_after_both_closes_only() {
    let (mut client, mut server) = (client(), server());
    let (first, _) = session(&mut client, &mut server);
    client.close(first);
    let second = client.open(&ChannelKind::Session).unwrap();
    assert_ne!(first.number, second.number);
    settle(&mut client, &mut server);
    let third = client.open(&ChannelKind::Session).unwrap();
    assert_eq!(first.number, third.number);
    assert_ne!(first, third);
    client.close(first);
    assert_eq!(client.channels(), 2, "the old id means nothing any more");
}

#[test]
fn a_wanted_channel_that_is_given_up_is_closed_as_it_opens() {
    let (mut client, mut server) = (client(), server());
    let here = client.open(&ChannelKind::Session).unwrap();
    client.close(here);
    settle(&mut client, &mut server);
    let Some(Event::Open { channel, .. }) = server.poll_event() else {
        panic!("nothing was opened");
    };
    server.confirm(channel).unwrap();
    assert_eq!(server.confirm(channel), Err(CallError::NotNow));
    settle(&mut client, &mut server);
    assert_eq!(events(&mut client), [Event::Closed(here)]);
    assert_eq!(events(&mut server), [Event::Closed(channel)]);
    assert_eq!((client.channels(), server.channels()), (0, 0));
}

#[test]
fn a_refusal_tells_why() {
    let (mut client, mut server) = (client(), server());
    let here = client.open(&ChannelKind::Session).unwrap();
    settle(&mut client, &mut server);
    let Some(Event::Open { channel, .. }) = server.poll_event() else {
        panic!("nothing was opened");
    };
    let why = OpenFailure::Other(0xfe00_0000);
    server.refuse(channel, why, "not\n\u{1b}[2Jtoday").unwrap();
    settle(&mut client, &mut server);
    let failed = Event::OpenFailed {
        channel: here,
        reason: why,
        text: "not??[2Jtoday".into(),
    };
    assert_eq!(events(&mut client), [failed]);
    assert_eq!((client.channels(), client.budget.given()), (0, 0));
}

#[test]
fn answers_keep_the_order_of_the_requests() {
    let (mut server, channel) = server_with_session(9, 100);
    let requests = [
        channel_request(0, "shell", true, &[]),
        channel_request(0, "keepalive@openssh.com", true, &[]),
        channel_request(0, "auth-agent-req@openssh.com", true, &[]),
        channel_request(0, "nobody-knows@example", false, &[1, 2, 3]),
    ];
    for request in &requests {
        assert_eq!(server.handle_input(NOW, request), Ok(Handled::Done));
    }
    let mut replies = events(&mut server)
        .into_iter()
        .filter_map(|event| match event {
            Event::Request { reply, .. } => reply,
            _ => None,
        });
    let (shell, agent) = (replies.next().unwrap(), replies.next().unwrap());
    assert!(output(&mut server).is_empty());
    server.answer(agent, true);
    assert!(output(&mut server).is_empty());
    server.answer(shell, true);
    let answers = [
        msg::CHANNEL_SUCCESS,
        msg::CHANNEL_FAILURE,
        msg::CHANNEL_SUCCESS,
    ];
    assert_eq!(output(&mut server), answers.map(|n| numbers(n, &[9])));
    assert_eq!(server.room(channel), 100);
}

#[test]
fn global_requests_and_their_answers() {
    let (mut client, mut server) = (client(), server());
    let forward = |port| GlobalRequest::TcpipForward {
        address: String::new(),
        port,
    };
    let any = client.global_request(&forward(0)).unwrap().unwrap();
    let fixed = client.global_request(&forward(80)).unwrap().unwrap();
    let alive = client.global_request(&GlobalRequest::KeepAlive);
    let alive = alive.unwrap().unwrap();
    settle(&mut client, &mut server);
    for port in [4321, 80] {
        let Some(Event::GlobalRequest {
            reply: Some(reply), ..
        }) = server.poll_event()
        else {
            panic!("no request");
        };
        server.answer_global(reply, GlobalAnswer::Bound { port });
    }
    settle(&mut client, &mut server);
    let granted = || GlobalAnswer::Granted { data: Vec::new() };
    let answers = [
        (any, GlobalAnswer::Bound { port: 4321 }),
        (fixed, granted()),
        (alive, granted()),
    ];
    let answers = answers.map(|(id, answer)| Event::GlobalReply { id, answer });
    assert_eq!(events(&mut client), answers);
    assert_eq!(
        server.global_request(&GlobalRequest::HostKeys(vec![b"k".to_vec()])),
        Ok(None)
    );
    assert_eq!(
        client.global_request(&GlobalRequest::NoMoreSessions),
        Ok(None)
    );
    // Each end is asked for something that it does not do.
    let wrong = [
        server.global_request(&forward(1)),
        client.global_request(&GlobalRequest::HostKeysProve(Vec::new())),
    ];
    settle(&mut client, &mut server);
    assert!(wrong.iter().all(Result::is_ok));
    let refused = Event::GlobalReply {
        id: wrong[0].unwrap().unwrap(),
        answer: GlobalAnswer::Refused,
    };
    assert_eq!(events(&mut server)[2], refused);
    // No more sessions can be opened, but other channels can.
    let session = client.open(&ChannelKind::Session).unwrap();
    let other = ChannelKind::DirectStreamlocal {
        path: b"/run/x".to_vec(),
    };
    client.open(&other).unwrap();
    settle(&mut client, &mut server);
    assert!(matches!(
        events(&mut client).last(),
        Some(Event::OpenFailed { channel, reason: OpenFailure::Prohibited, .. }) if *channel == session
    ));
    assert!(matches!(&events(&mut server)[..], [Event::Open { kind, .. }] if *kind == other));
}

/// Ten thousand channels, in sequence and a thousand at a time; nothing is left of them.
#[test]
fn ten_thousand_channels() {
    let (mut client, mut server) = (client(), server());
    for _ in 0..10 {
        let all: Vec<ChannelId> = (0..1000)
            .map(|_| client.open(&ChannelKind::Session).unwrap())
            .collect();
        let (mut opened, mut there) = (0, Vec::new());
        while opened < all.len() {
            for payload in output(&mut client) {
                let _ = server.handle_input(NOW, &payload).unwrap();
                if let Some(Event::Open { channel, .. }) = server.poll_event() {
                    server.confirm(channel).unwrap();
                    there.push(channel);
                }
            }
            settle(&mut client, &mut server);
            opened += events(&mut client).len();
        }
        let given = client.budget.given();
        assert!(given <= (64 << 20) + (32_000 << 10), "{given}");
        for (n, (here, there)) in all.iter().zip(&there).enumerate() {
            client.want_write(*here);
            match n % 3 {
                0 => client.close(*here),
                1 => server.close(*there),
                _ => {
                    client.close(*here);
                    server.close(*there);
                }
            }
        }
        settle(&mut client, &mut server);
        for end in [&mut client, &mut server] {
            assert_eq!(events(end).len(), 1000);
            assert_eq!((end.channels(), end.budget.given()), (0, 0));
            assert!(end.turns.is_empty() && end.adjusts.is_empty());
        }
    }
}

#[test]
fn writers_take_turns_and_come_back_with_their_window() {
    let mut server = server();
    let mut ids = Vec::new();
    for (remote, window) in [(1, 10), (2, 0), (3, 10)] {
        let _ = server
            .handle_input(NOW, &open_session(remote, window, 4))
            .unwrap();
        let Some(Event::Open { channel, .. }) = server.poll_event() else {
            panic!("nothing was opened");
        };
        server.confirm(channel).unwrap();
        server.want_write(channel);
        server.want_write(channel);
        ids.push(channel);
    }
    assert_eq!(server.next_writer(), None, "the confirmations go first");
    output(&mut server);
    let mut order = Vec::new();
    while let Some(id) = server.next_writer() {
        order.push(id.number);
        send(&mut server, id, Kind::Stdout, &[7; 100]).unwrap();
        server.want_write(id);
    }
    assert_eq!(order, [0, 2, 0, 2, 0, 2]);
    for (number, id) in (0..).zip(&ids) {
        let adjust = numbers(msg::CHANNEL_WINDOW_ADJUST, &[number, 1]);
        let _ = server.handle_input(NOW, &adjust).unwrap();
        assert_eq!(events(&mut server), [Event::Writable(*id)]);
        assert_eq!((server.next_writer(), server.room(*id)), (Some(*id), 1));
    }
    assert_eq!(server.next_writer(), None);
}
