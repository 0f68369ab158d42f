//! Two ends against each other, and one end against an arbitrary peer.

mod floods;
mod forms;
mod hostile;
mod life;
mod link;
mod model;
mod own;
mod policy;

use adit_wire::Time;

use super::*;
use crate::error::SshError;
use crate::msg;
use crate::wire::SshBufMut;

const NOW: Time = Time(0);

/// Returns a message: its number and the output of `write`.
fn message(number: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![number];
    write(&mut out);
    out
}

/// Returns a message of 32-bit numbers.
fn numbers(number: u8, fields: &[u32]) -> Vec<u8> {
    message(number, |out| {
        for field in fields {
            out.put_u32(*field);
        }
    })
}

fn open_session(sender: u32, window: u32, max_packet: u32) -> Vec<u8> {
    message(msg::CHANNEL_OPEN, |out| {
        out.put_string(b"session");
        for field in [sender, window, max_packet] {
            out.put_u32(field);
        }
    })
}

fn data(channel: u32, bytes: &[u8]) -> Vec<u8> {
    message(msg::CHANNEL_DATA, |out| {
        out.put_u32(channel);
        out.put_string(bytes);
    })
}

fn channel_request(channel: u32, name: &str, want: bool, fields: &[u8]) -> Vec<u8> {
    message(msg::CHANNEL_REQUEST, |out| {
        out.put_u32(channel);
        out.put_string(name.as_bytes());
        out.put_bool(want);
        out.put_raw(fields);
    })
}

fn global_request(name: &str, want: bool, fields: &[u8]) -> Vec<u8> {
    message(msg::GLOBAL_REQUEST, |out| {
        out.put_string(name.as_bytes());
        out.put_bool(want);
        out.put_raw(fields);
    })
}

fn client() -> Connection {
    Connection::new(Role::Client, ConnectionLimits::default())
}

fn server() -> Connection {
    Connection::new(Role::Server, ConnectionLimits::default())
}

/// Returns the pending output of one end, one payload each.
fn output(end: &mut Connection) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| {
        let mut out = Vec::new();
        end.poll_output(&mut out).then_some(out)
    })
    .collect()
}

fn events(end: &mut Connection) -> Vec<ConnectionEvent> {
    core::iter::from_fn(|| end.poll_event()).collect()
}

/// Transfers control messages in both directions until there are none.
fn settle(a: &mut Connection, b: &mut Connection) {
    for _ in 0..100 {
        let (from_a, from_b) = (output(a), output(b));
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        for payload in from_a {
            assert_eq!(b.handle_input(NOW, &payload), Ok(HandledInput::Done));
        }
        for payload in from_b {
            assert_eq!(a.handle_input(NOW, &payload), Ok(HandledInput::Done));
        }
    }
    panic!("they never come to an end");
}

/// Opens a session; returns its identifiers at the client and at the server.
fn session(client: &mut Connection, server: &mut Connection) -> (ChannelId, ChannelId) {
    let here = client.open_channel(&ChannelKind::Session).unwrap();
    settle(client, server);
    let there = match server.poll_event() {
        Some(ConnectionEvent::Open {
            channel,
            kind: ChannelKind::Session,
        }) => channel,
        other => panic!("{other:?}"),
    };
    server.confirm_open(there).unwrap();
    settle(client, server);
    assert_eq!(client.poll_event(), Some(ConnectionEvent::Opened(here)));
    (here, there)
}

/// Returns a server with one open session, whose peer is the test and numbers it `remote`.
fn server_with_session(remote: u32, window: u32) -> (Connection, ChannelId) {
    let mut server = server();
    let _ = server
        .handle_input(NOW, &open_session(remote, window, 32768))
        .unwrap();
    let Some(ConnectionEvent::Open { channel, .. }) = server.poll_event() else {
        panic!("nothing was opened");
    };
    server.confirm_open(channel).unwrap();
    assert_eq!(output(&mut server).len(), 1);
    (server, channel)
}

/// Sends as much of `bytes` as fits in one message.
fn send(end: &mut Connection, id: ChannelId, kind: DataKind, bytes: &[u8]) -> Option<Vec<u8>> {
    let now = bytes.get(..end.send_capacity(id)).unwrap_or(bytes);
    let mut payload = Vec::new();
    end.begin_data(id, kind, now.len(), &mut payload).ok()?;
    payload.extend_from_slice(now);
    Some(payload)
}

/// Passes a payload that ends the connection permanently.
fn fails(end: &mut Connection, payload: &[u8]) -> SshError {
    let why = end.handle_input(NOW, payload).unwrap_err();
    assert_eq!(
        end.handle_input(NOW, &[]),
        Err(why.clone()),
        "a break heals"
    );
    why
}
