//! Whole sessions: golden bytes, two ends on a pipe, and hostile peers.

mod flow;
mod golden;
mod hostile;
mod pipe;

use adit_wire::Time;

use crate::{Config, Event, Role, Session, StreamId, Version};

const START: Time = Time(0);

fn session(version: Version, role: Role) -> Session {
    Session::new(Config::new(version, role), START).unwrap()
}

fn output(session: &mut Session) -> Vec<u8> {
    let mut out = vec![0; 70_000];
    let mut wire = Vec::new();
    loop {
        let len = session.poll_output(&mut out);
        if len == 0 {
            assert!(!session.wants_output());
            return wire;
        }
        wire.extend_from_slice(&out[..len]);
    }
}

/// Passes output between both ends until there is none.
fn talk(a: &mut Session, b: &mut Session) {
    for _ in 0..1000 {
        let (to_b, to_a) = (output(a), output(b));
        if to_a.is_empty() && to_b.is_empty() {
            return;
        }
        assert_eq!(b.handle_input(START, &to_b), Ok(to_b.len()));
        assert_eq!(a.handle_input(START, &to_a), Ok(to_a.len()));
    }
    panic!("the ends never become quiet");
}

fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn read_all(session: &mut Session, id: StreamId) -> Vec<u8> {
    let (mut all, mut out) = (Vec::new(), [0; 1000]);
    while let Ok(len @ 1..) = session.read(id, &mut out) {
        all.extend_from_slice(&out[..len]);
    }
    all
}

fn frame(version: u8, command: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap().to_le_bytes();
    let id = id.to_le_bytes();
    [&[version, command], &len[..], &id, body].concat()
}
