//! Application-defined channels and requests.

use super::*;
use crate::connection::{channel_kind, global, request};
use crate::wire::MessageReader;

const NAME: &str = "chat@example.com";

fn own(data: &[u8]) -> CustomMessage {
    CustomMessage::new(NAME, data).unwrap()
}

fn open(sender: u32, name: &str, data: &[u8]) -> Vec<u8> {
    message(msg::CHANNEL_OPEN, |out| {
        out.put_string(name.as_bytes());
        for field in [sender, 100, 100] {
            out.put_u32(field);
        }
        out.put_raw(data);
    })
}

/// Opens a channel of an application-defined type from `a`; returns its identifiers at both ends.
fn channel(a: &mut Connection, b: &mut Connection) -> (ChannelId, ChannelId) {
    b.set_accept_custom_channels(true);
    let here = a.open_channel(&ChannelKind::Custom(own(b"room"))).unwrap();
    settle(a, b);
    let Some(ConnectionEvent::Open { channel, kind }) = b.poll_event() else {
        panic!("nothing was opened");
    };
    assert_eq!(kind, ChannelKind::Custom(own(b"room")));
    b.confirm_open(channel).unwrap();
    settle(a, b);
    assert_eq!(events(a), [ConnectionEvent::Opened(here)]);
    (here, channel)
}

/// Both ends may open a channel, send any request in it, and send bytes.
#[test]
fn channels_go_both_ways() {
    for client_opens in [true, false] {
        let (mut a, mut b) = match client_opens {
            true => (client(), server()),
            false => (server(), client()),
        };
        let (here, there) = channel(&mut a, &mut b);
        for name in ["join@example.com", "exec", "shell"] {
            // Names with a meaning in a session have none here, and their data has no format.
            let wish = || SshChannelRequest::Custom(CustomMessage::new(name, *b"\0").unwrap());
            b.send_request(there, &wish(), WantReply::Yes).unwrap();
            settle(&mut a, &mut b);
            let Some(ConnectionEvent::Request {
                channel,
                request,
                reply,
            }) = a.poll_event()
            else {
                panic!("nothing is asked");
            };
            assert_eq!((channel, request), (here, wish()));
            a.answer_request(reply.unwrap(), name != "shell");
            settle(&mut a, &mut b);
            let done = ConnectionEvent::RequestDone {
                channel: there,
                ok: name != "shell",
            };
            assert_eq!(events(&mut b), [done]);
        }
        let bytes = send(&mut a, here, DataKind::Stdout, b"hello").unwrap();
        let handled = b.handle_input(NOW, &bytes).unwrap();
        assert!(matches!(handled, HandledInput::Data { channel, .. } if channel == there));
    }
}

#[test]
fn what_nobody_takes_is_unknown() {
    for mut end in [client(), server()] {
        let _ = end.handle_input(NOW, &open(7, NAME, b"data")).unwrap();
        let refusal = output(&mut end);
        assert_eq!(refusal[0][..9], [92, 0, 0, 0, 7, 0, 0, 0, 3]);
        end.set_accept_custom_channels(true);
        for (name, data) in [
            ("a name", &b""[..]),
            ("", b""),
            (&*"x".repeat(65), b""),
            (NAME, &[0; CustomMessage::MAX_DATA + 1]),
        ] {
            let _ = end.handle_input(NOW, &open(7, name, data)).unwrap();
            assert_eq!(output(&mut end)[0][5..9], [0, 0, 0, 3], "{name}");
            let _ = end
                .handle_input(NOW, &global_request(name, true, data))
                .unwrap();
            assert_eq!(output(&mut end), [[msg::REQUEST_FAILURE]], "{name}");
        }
        assert_eq!((events(&mut end), end.channel_count()), (vec![], 0));
    }
}

/// Pending channels are bounded by number and by bytes.
#[test]
fn openings_that_nobody_answers() {
    let mut end = client();
    end.set_accept_custom_channels(true);
    for n in 0..1000 {
        let _ = end.handle_input(NOW, &open(n, NAME, b"")).unwrap();
    }
    let asked = events(&mut end).len();
    assert_eq!((asked, output(&mut end).len()), (128, 1000 - 128));

    let mut end = client();
    end.set_accept_custom_channels(true);
    let data = vec![0; 30_000];
    let mut wanted = Vec::new();
    for n in 0..100 {
        let _ = end.handle_input(NOW, &open(n, NAME, &data)).unwrap();
        wanted.extend(events(&mut end));
        let octets = wanted.len() * (NAME.len() + data.len());
        assert_eq!(end.pending_open_bytes, octets);
    }
    assert_eq!(wanted.len(), (256 << 10) / (NAME.len() + data.len()));
    let refused = output(&mut end);
    let shortage = &[0, 0, 0, 4][..];
    assert!(refused.iter().all(|r| r.get(5..9) == Some(shortage)));
    // Once they are answered, there is space again.
    for (n, event) in wanted.into_iter().enumerate() {
        let ConnectionEvent::Open { channel, .. } = event else {
            panic!("{event:?}");
        };
        match n % 3 {
            0 => end.confirm_open(channel).unwrap(),
            1 => end
                .refuse_open(channel, OpenFailureReason::Prohibited, "")
                .unwrap(),
            _ => end.close_channel(channel),
        }
    }
    assert_eq!(end.pending_open_bytes, 0);
}

/// Answers are sent in the order of the requests, in any order of the calls.
#[test]
fn global_requests_are_answered_in_their_order() {
    let (mut a, mut b) = (client(), server());
    let ask = |a: &mut Connection, data: &[u8], want| {
        let own = own(data);
        a.send_global_request(&GlobalRequest::Custom { own, want })
            .unwrap()
    };
    let first = ask(&mut a, b"1", WantReply::Yes).unwrap();
    assert_eq!(ask(&mut a, b"told", WantReply::No), None);
    let second = ask(&mut a, b"2", WantReply::Yes).unwrap();
    settle(&mut a, &mut b);
    let mut replies = Vec::new();
    for event in events(&mut b) {
        let ConnectionEvent::GlobalRequest {
            request: GlobalRequest::Custom { own, want },
            reply,
        } = event
        else {
            panic!("{event:?}");
        };
        assert_eq!(reply.is_some(), want == WantReply::Yes);
        replies.extend(reply.map(|reply| (reply, own.into_parts().1)));
    }
    // A keepalive in between waits for the first answer.
    let life = a
        .send_global_request(&GlobalRequest::KeepAlive)
        .unwrap()
        .unwrap();
    settle(&mut a, &mut b);
    for (reply, data) in replies.into_iter().rev() {
        assert_eq!(events(&mut a), []);
        b.answer_global(reply, GlobalAnswer::Granted { data });
        settle(&mut a, &mut b);
    }
    let came = |id, data: &[u8]| ConnectionEvent::GlobalReply {
        id,
        answer: GlobalAnswer::Granted { data: data.into() },
    };
    let all = [came(first, b"1"), came(second, b"2"), came(life, b"")];
    assert_eq!(events(&mut a), all);
}

/// Each list of names contains all that are parsed here, and none can be application-defined.
#[test]
fn names_that_are_known_are_reserved() {
    let (mut a, mut b) = (client(), server());
    let (in_own, _) = channel(&mut a, &mut b);
    let (in_session, _) = session(&mut a, &mut b);
    let reserved = Err(ChannelCallError::Reserved);
    for name in channel_kind::KNOWN {
        let read = ChannelKind::parse(name.as_bytes(), &mut MessageReader::new(b"", "x"));
        assert_ne!(read, Ok(Err(OpenFailureReason::UnknownType)), "{name}");
        let own = CustomMessage::new(name, []).unwrap();
        assert_eq!(
            a.open_channel(&ChannelKind::Custom(own)).map(drop),
            reserved
        );
    }
    for name in global::KNOWN {
        let (want, mut r) = (WantReply::No, MessageReader::new(b"", "x"));
        let read = GlobalRequest::parse(name.as_bytes(), want, &mut r);
        let is_own = matches!(read, Ok(Some(GlobalRequest::Custom { .. })));
        assert!(!is_own, "{name}");
        let own = CustomMessage::new(name, []).unwrap();
        let asked = a.send_global_request(&GlobalRequest::Custom { own, want });
        assert_eq!(asked.map(drop), reserved);
    }
    for name in request::KNOWN {
        let read = SshChannelRequest::parse(name.as_bytes(), &mut MessageReader::new(b"", "x"));
        let keepalive = name == "keepalive@openssh.com";
        assert_eq!(read == Ok(None), keepalive, "{name}");
        let wish = SshChannelRequest::Custom(CustomMessage::new(name, []).unwrap());
        let ask = |a: &mut Connection, id| a.send_request(id, &wish, WantReply::No);
        assert_eq!(ask(&mut a, in_session), reserved, "{name}");
        let may = if keepalive { reserved } else { Ok(()) };
        assert_eq!(ask(&mut a, in_own), may, "{name}");
    }
    let others = SshChannelRequest::Custom(own(b""));
    assert_eq!(a.send_request(in_session, &others, WantReply::No), Ok(()));
}

/// A server's keepalive in a channel of an application-defined type is answered here.
#[test]
fn signs_of_life_are_answered() {
    let (mut a, mut b) = (client(), server());
    let (here, there) = channel(&mut a, &mut b);
    let life = channel_request(here.number(), "keepalive@openssh.com", true, &[]);
    let _ = a.handle_input(NOW, &life).unwrap();
    let answer = numbers(msg::CHANNEL_FAILURE, &[there.number()]);
    assert_eq!((events(&mut a), output(&mut a)), (vec![], vec![answer]));
}
