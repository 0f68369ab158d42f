//! The life cycle of channels and requests as required by the RFC.

use super::*;

#[test]
fn a_command_from_beginning_to_end() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    let exec = SshChannelRequest::Exec(b"date".to_vec());
    client.send_request(here, &exec, WantReply::Yes).unwrap();
    settle(&mut client, &mut server);
    let Some(ConnectionEvent::Request {
        channel,
        request,
        reply: Some(reply),
    }) = server.poll_event()
    else {
        panic!("no request");
    };
    assert_eq!((channel, request), (there, exec));
    server.answer_request(reply, true);
    assert_eq!(server.send_capacity(there), 0, "the answer goes first");
    settle(&mut client, &mut server);
    assert_eq!(
        events(&mut client),
        [ConnectionEvent::RequestDone {
            channel: here,
            ok: true
        }]
    );
    let payload = send(&mut server, there, DataKind::Stdout, b"today").unwrap();
    assert!(matches!(
        client.handle_input(NOW, &payload),
        Ok(HandledInput::Data { .. })
    ));
    server.send_eof(there).unwrap();
    assert_eq!(server.send_eof(there), Err(ChannelCallError::Ended));
    let status = SshChannelRequest::ExitStatus(0);
    server.send_request(there, &status, WantReply::No).unwrap();
    server.close_channel(there);
    assert_eq!(
        server.send_request(there, &status, WantReply::No),
        Err(ChannelCallError::Ended)
    );
    settle(&mut client, &mut server);
    assert_eq!(
        events(&mut client),
        [
            ConnectionEvent::Eof(here),
            ConnectionEvent::Request {
                channel: here,
                request: status,
                reply: None
            },
            ConnectionEvent::Closed(here)
        ]
    );
    assert_eq!(events(&mut server), [ConnectionEvent::Closed(there)]);
    assert_eq!(server.channel_count(), 0);
    assert_eq!(client.channel_count(), 1, "five bytes are not consumed");
    client.consume_data(here, 5, NOW);
    assert_eq!((client.channel_count(), client.budget.given()), (0, 0));
    assert_eq!(client.send_capacity(here), 0);
    assert_eq!(client.send_eof(here), Err(ChannelCallError::Gone));
}

#[test]
fn half_close_leaves_the_other_way_open() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    client.send_eof(here).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(events(&mut server), [ConnectionEvent::Eof(there)]);
    assert_eq!(
        (client.send_capacity(here), server.send_capacity(there)),
        (0, 32768)
    );
    let payload = send(&mut server, there, DataKind::Stdout, &[1; 9]).unwrap();
    assert!(matches!(
        client.handle_input(NOW, &payload),
        Ok(HandledInput::Data { .. })
    ));
}

/// A pending window adjustment is dropped once no more data can arrive.
#[test]
fn no_adjust_comes_behind_the_end() {
    for end in [msg::CHANNEL_EOF, msg::CHANNEL_CLOSE, 0] {
        let (mut server, id) = server_with_session(9, 100);
        for _ in 0..32 {
            let _ = server.handle_input(NOW, &data(0, &[0; 32768])).unwrap();
            server.consume_data(id, 32768, NOW);
        }
        assert_eq!(server.pending_adjusts.len(), 1);
        let last = match end {
            0 => {
                server.close_channel(id);
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
    client.close_channel(first);
    let second = client.open_channel(&ChannelKind::Session).unwrap();
    assert_ne!(first.number, second.number);
    settle(&mut client, &mut server);
    let third = client.open_channel(&ChannelKind::Session).unwrap();
    assert_eq!(first.number, third.number);
    assert_ne!(first, third);
    client.close_channel(first);
    assert_eq!(
        client.channel_count(),
        2,
        "the old id means nothing any more"
    );
}

#[test]
fn a_wanted_channel_that_is_given_up_is_closed_as_it_opens() {
    let (mut client, mut server) = (client(), server());
    let here = client.open_channel(&ChannelKind::Session).unwrap();
    client.close_channel(here);
    settle(&mut client, &mut server);
    let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
        panic!("nothing was opened");
    };
    server.confirm_open(channel).unwrap();
    assert_eq!(server.confirm_open(channel), Err(ChannelCallError::NotNow));
    settle(&mut client, &mut server);
    assert_eq!(events(&mut client), [ConnectionEvent::Closed(here)]);
    assert_eq!(events(&mut server), [ConnectionEvent::Closed(channel)]);
    assert_eq!((client.channel_count(), server.channel_count()), (0, 0));
}

#[test]
fn a_refusal_tells_why() {
    let (mut client, mut server) = (client(), server());
    let here = client.open_channel(&ChannelKind::Session).unwrap();
    settle(&mut client, &mut server);
    let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
        panic!("nothing was opened");
    };
    let why = OpenFailureReason::Other(0xfe00_0000);
    server
        .refuse_open(channel, why, "not\n\u{1b}[2Jtoday")
        .unwrap();
    settle(&mut client, &mut server);
    let failed = ConnectionEvent::OpenFailed {
        channel: here,
        reason: why,
        text: "not??[2Jtoday".into(),
    };
    assert_eq!(events(&mut client), [failed]);
    assert_eq!((client.channel_count(), client.budget.given()), (0, 0));
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
        assert_eq!(server.handle_input(NOW, request), Ok(HandledInput::Done));
    }
    let mut replies = events(&mut server)
        .into_iter()
        .filter_map(|event| match event {
            ConnectionEvent::Request { reply, .. } => reply,
            _ => None,
        });
    let (shell, agent) = (replies.next().unwrap(), replies.next().unwrap());
    assert!(output(&mut server).is_empty());
    server.answer_request(agent, true);
    assert!(output(&mut server).is_empty());
    server.answer_request(shell, true);
    let answers = [
        msg::CHANNEL_SUCCESS,
        msg::CHANNEL_FAILURE,
        msg::CHANNEL_SUCCESS,
    ];
    assert_eq!(output(&mut server), answers.map(|n| numbers(n, &[9])));
    assert_eq!(server.send_capacity(channel), 100);
}

#[test]
fn global_requests_and_their_answers() {
    let (mut client, mut server) = (client(), server());
    let forward = |port| GlobalRequest::TcpipForward {
        address: String::new(),
        port,
    };
    let any = client.send_global_request(&forward(0)).unwrap().unwrap();
    let fixed = client.send_global_request(&forward(80)).unwrap().unwrap();
    let alive = client.send_global_request(&GlobalRequest::KeepAlive);
    let alive = alive.unwrap().unwrap();
    settle(&mut client, &mut server);
    for port in [4321, 80] {
        let Some(ConnectionEvent::GlobalRequest {
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
    let answers = answers.map(|(id, answer)| ConnectionEvent::GlobalReply { id, answer });
    assert_eq!(events(&mut client), answers);
    assert_eq!(
        server.send_global_request(&GlobalRequest::HostKeys(vec![b"k".to_vec()])),
        Ok(None)
    );
    assert_eq!(
        client.send_global_request(&GlobalRequest::NoMoreSessions),
        Ok(None)
    );
    // Each end is asked for something that it does not do.
    let wrong = [
        server.send_global_request(&forward(1)),
        client.send_global_request(&GlobalRequest::HostKeysProve(Vec::new())),
    ];
    settle(&mut client, &mut server);
    assert!(wrong.iter().all(Result::is_ok));
    let refused = ConnectionEvent::GlobalReply {
        id: wrong[0].unwrap().unwrap(),
        answer: GlobalAnswer::Refused,
    };
    assert_eq!(events(&mut server)[2], refused);
    // No more sessions can be opened, but other channels can.
    let session = client.open_channel(&ChannelKind::Session).unwrap();
    let other = ChannelKind::DirectStreamlocal {
        path: b"/run/x".to_vec(),
    };
    client.open_channel(&other).unwrap();
    settle(&mut client, &mut server);
    assert!(matches!(
        events(&mut client).last(),
        Some(ConnectionEvent::OpenFailed { channel, reason: OpenFailureReason::Prohibited, .. }) if *channel == session
    ));
    assert!(
        matches!(&events(&mut server)[..], [ConnectionEvent::Open { kind, .. }] if *kind == other)
    );
}

/// Ten thousand channels, in sequence and a thousand at a time; nothing is left of them.
#[test]
fn ten_thousand_channels() {
    let (mut client, mut server) = (client(), server());
    for _ in 0..10 {
        let all: Vec<ChannelId> = (0..1000)
            .map(|_| client.open_channel(&ChannelKind::Session).unwrap())
            .collect();
        let (mut opened, mut there) = (0, Vec::new());
        while opened < all.len() {
            for payload in output(&mut client) {
                let _ = server.handle_input(NOW, &payload).unwrap();
                if let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() {
                    server.confirm_open(channel).unwrap();
                    there.push(channel);
                }
            }
            settle(&mut client, &mut server);
            opened += events(&mut client).len();
        }
        let given = client.budget.given();
        assert!(given <= (64 << 20) + (32_000 << 10), "{given}");
        for (n, (here, there)) in all.iter().zip(&there).enumerate() {
            client.queue_writer(*here);
            match n % 3 {
                0 => client.close_channel(*here),
                1 => server.close_channel(*there),
                _ => {
                    client.close_channel(*here);
                    server.close_channel(*there);
                }
            }
        }
        settle(&mut client, &mut server);
        for end in [&mut client, &mut server] {
            assert_eq!(events(end).len(), 1000);
            assert_eq!((end.channel_count(), end.budget.given()), (0, 0));
            assert!(end.write_queue.is_empty() && end.pending_adjusts.is_empty());
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
        let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
            panic!("nothing was opened");
        };
        server.confirm_open(channel).unwrap();
        server.queue_writer(channel);
        server.queue_writer(channel);
        ids.push(channel);
    }
    assert_eq!(server.next_writer(), None, "the confirmations go first");
    output(&mut server);
    let mut order = Vec::new();
    while let Some(id) = server.next_writer() {
        order.push(id.number);
        send(&mut server, id, DataKind::Stdout, &[7; 100]).unwrap();
        server.queue_writer(id);
    }
    assert_eq!(order, [0, 2, 0, 2, 0, 2]);
    for (number, id) in (0..).zip(&ids) {
        let adjust = numbers(msg::CHANNEL_WINDOW_ADJUST, &[number, 1]);
        let _ = server.handle_input(NOW, &adjust).unwrap();
        assert_eq!(events(&mut server), [ConnectionEvent::Writable(*id)]);
        assert_eq!(
            (server.next_writer(), server.send_capacity(*id)),
            (Some(*id), 1)
        );
    }
    assert_eq!(server.next_writer(), None);
}
