//! Requests that each role may make.

use super::*;

fn forwarded(sender: u32, address: &str, port: u32) -> Vec<u8> {
    message(msg::CHANNEL_OPEN, |out| {
        out.put_string(b"forwarded-tcpip");
        for field in [sender, 100, 100] {
            out.put_u32(field);
        }
        out.put_string(address.as_bytes());
        out.put_u32(port);
        out.put_string(b"192.0.2.9");
        out.put_u32(1);
    })
}

/// Only requested forwards may open channels, and only while they are requested.
#[test]
fn forwards_that_nobody_asked_for() {
    let mut client = client();
    let comes = |client: &mut Connection, address: &str, port| {
        let open = forwarded(1, address, port);
        assert_eq!(client.handle_input(NOW, &open), Ok(HandledInput::Done));
        match client.poll_event() {
            Some(ConnectionEvent::Open { channel, .. }) => {
                client
                    .refuse_open(channel, OpenFailureReason::Prohibited, "")
                    .unwrap();
                output(client);
                true
            }
            None => {
                let refusal = output(client).pop().unwrap();
                assert_eq!(refusal.first(), Some(&msg::CHANNEL_OPEN_FAILURE));
                false
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(!comes(&mut client, "localhost", 80));
    let (address, port) = (String::from("localhost"), 80);
    let listen = GlobalRequest::TcpipForward {
        address: address.clone(),
        port,
    };
    client.send_global_request(&listen).unwrap();
    output(&mut client);
    assert!(!comes(&mut client, "localhost", 80), "not granted yet");
    let _ = client.handle_input(NOW, &[msg::REQUEST_SUCCESS]).unwrap();
    events(&mut client);
    assert!(comes(&mut client, "localhost", 80));
    assert!(comes(&mut client, "127.0.0.1", 80));
    assert!(!comes(&mut client, "localhost", 81));
    assert!(!comes(&mut client, "192.0.2.1", 80));
    assert!(!comes(&mut client, "localhost", 65616), "80 modulo 2^16");
    let leave = GlobalRequest::CancelTcpipForward { address, port };
    client.send_global_request(&leave).unwrap();
    output(&mut client);
    let _ = client.handle_input(NOW, &[msg::REQUEST_SUCCESS]).unwrap();
    events(&mut client);
    assert!(!comes(&mut client, "localhost", 80));
    assert_eq!(client.channel_count(), 0);
}

/// A client refuses sessions from the server; its display and its agent only if it requested them.
#[test]
fn each_role_is_asked_for_its_own() {
    let open = |name: &str| {
        message(msg::CHANNEL_OPEN, |out| {
            out.put_string(name.as_bytes());
            for field in [3, 100, 100] {
                out.put_u32(field);
            }
            if name == "x11" {
                out.put_string(b"192.0.2.9");
                out.put_u32(1);
            }
        })
    };
    let reason = |end: &mut Connection, payload: &[u8]| {
        assert_eq!(end.handle_input(NOW, payload), Ok(HandledInput::Done));
        let refusal = output(end).pop()?;
        refusal.get(8).copied()
    };
    let (mut client, mut server) = (client(), server());
    let (here, _) = session(&mut client, &mut server);
    assert_eq!(reason(&mut client, &open("session")), Some(1));
    assert_eq!(reason(&mut client, &open("x11")), Some(1));
    assert_eq!(
        reason(&mut client, &open("auth-agent@openssh.com")),
        Some(1)
    );
    assert_eq!(reason(&mut client, &open("what@example")), Some(3));
    assert_eq!(reason(&mut server, &forwarded(3, "", 80)), Some(1));
    assert_eq!(reason(&mut server, &open("x11")), Some(1));
    client
        .send_request(here, &SshChannelRequest::Agent, WantReply::Yes)
        .unwrap();
    output(&mut client);
    assert_eq!(
        reason(&mut client, &open("auth-agent@openssh.com")),
        Some(1)
    );
    let _ = client
        .handle_input(NOW, &numbers(msg::CHANNEL_SUCCESS, &[0]))
        .unwrap();
    events(&mut client);
    assert_eq!(reason(&mut client, &open("x11")), Some(1));
    assert_eq!(reason(&mut client, &open("auth-agent@openssh.com")), None);
    let kind = ChannelKind::Agent;
    assert!(
        matches!(client.poll_event(), Some(ConnectionEvent::Open { kind: k, .. }) if k == kind)
    );
}
