//! A session of smux against a peer that sends arbitrary frames: memory is bounded, and splitting
//! changes nothing.

#![no_main]

use std::collections::BTreeMap;

use adit_fuzz::{ActionScript, SplitInput};
use adit_smux_proto::{Config, Event, Role, Session, StreamId, Version};
use adit_wire::{ProtocolError, Time};
use libfuzzer_sys::fuzz_target;

const MAX_STREAMS: usize = 5;
const SESSION_BUFFER: u32 = 400;

fn new_session(flags: u8) -> Session {
    let version = if flags & 1 == 0 {
        Version::V1
    } else {
        Version::V2
    };
    let role = if flags & 2 == 0 {
        Role::Client
    } else {
        Role::Server
    };
    let mut config = Config::new(version, role);
    (config.max_streams, config.backlog) = (MAX_STREAMS, usize::from(flags >> 2) % 4);
    (config.session_buffer, config.stream_buffer) = (SESSION_BUFFER, 100);
    (config.max_frame, config.send_buffer) = (50, 300);
    Session::new(config, Time(0)).expect("right settings")
}

/// Returns frames whose headers are correct, or not.
fn read_frames(script: &mut ActionScript<'_>, flags: u8) -> Vec<u8> {
    let mut wire = Vec::new();
    while !script.is_empty() {
        let shape = script.read_u8();
        let command = shape % 8;
        let body = match command {
            0 | 1 | 3 if shape & 8 == 0 => &[],
            4 if shape & 8 == 0 => script.take_up_to(8),
            _ => script.read_bytes(),
        };
        let version = if shape & 0xf0 == 0xf0 {
            script.read_u8()
        } else {
            1 + (flags & 1)
        };
        let id = u32::from(script.read_u8() % 12);
        let len = u16::try_from(body.len()).unwrap_or(0);
        let len = if shape & 0xf0 == 0xe0 {
            script.read_u16()
        } else {
            len
        };
        wire.extend([version, command]);
        wire.extend(len.to_le_bytes());
        wire.extend(id.to_le_bytes());
        wire.extend_from_slice(body);
    }
    wire
}

/// The view of the application and of the peer if the application does nothing.
type SessionOutcome = (
    Result<usize, ProtocolError>,
    Vec<Event>,
    BTreeMap<u32, Vec<u8>>,
    Vec<u8>,
    usize,
);

fn run_session(flags: u8, wire: &[u8], pieces: &[usize]) -> SessionOutcome {
    let mut session = new_session(flags);
    let (mut taken, mut rest) = (Ok(0), wire);
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(*piece));
        match session.handle_input(Time(0), now) {
            Ok(used) => {
                taken = taken.map(|taken| taken + used);
                if used < now.len() {
                    assert!(
                        !session.wants_input(),
                        "it stopped although it wants more input"
                    );
                    break;
                }
            }
            Err(why) => {
                assert_eq!(
                    session.handle_input(Time(0), b""),
                    Err(why),
                    "a broken session works again"
                );
                taken = Err(why);
                break;
            }
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    assert!(session.stream_count() <= MAX_STREAMS);
    let events: Vec<Event> = core::iter::from_fn(|| session.poll_event()).collect();
    let opened = events.iter().filter_map(|event| match event {
        Event::Opened(id) => Some(*id),
        _ => None,
    });
    let mut read = BTreeMap::new();
    let mut held = 0;
    for id in opened {
        let mut out = [0; 99];
        let text: &mut Vec<u8> = read.entry(id.get()).or_default();
        while let Ok(len @ 1..) = session.read(id, &mut out) {
            text.extend_from_slice(&out[..len]);
            held += len;
        }
    }
    assert!(
        held < SESSION_BUFFER as usize + 65_536,
        "{held} bytes were held"
    );
    let answer = collect_output(&mut session);
    (taken, events, read, answer, session.stream_count())
}

fn collect_output(session: &mut Session) -> Vec<u8> {
    let (mut wire, mut out) = (Vec::new(), [0; 300]);
    loop {
        let len = session.poll_output(&mut out);
        if len == 0 {
            return wire;
        }
        wire.extend_from_slice(&out[..len]);
        assert!(wire.len() < 1 << 20, "the output has no end");
    }
}

/// The application acts between the frames.
fn check_actions(flags: u8, script: &mut ActionScript<'_>, wire: &[u8]) {
    let mut session = new_session(flags);
    let mut rest = wire;
    let mut now = 0;
    let mut open: Vec<StreamId> = Vec::new();
    while !script.is_empty() {
        let act = script.read_u8();
        let id = open.get(usize::from(act >> 4) % open.len().max(1)).copied();
        match (act % 12, id) {
            (0 | 1, _) => {
                let piece = usize::from(script.read_u8());
                let (now_here, _) = rest.split_at(rest.len().min(piece));
                match session.handle_input(Time(now), now_here) {
                    Ok(used) => rest = &rest[used..],
                    Err(_) => assert!(session.open().is_err(), "a broken session opens streams"),
                }
            }
            (2, _) => open.extend(session.accept()),
            (3, _) => open.extend(session.open().ok()),
            (4, _) => now += u64::from(script.read_u16()) << (act >> 4),
            (5, Some(id)) => drop(session.write(id, &[7; 200][..script.read_below(200)])),
            (6, Some(id)) => drop(session.consume(id, script.read_u8().into())),
            (7, Some(id)) => drop(session.close_write(id)),
            (8, Some(id)) => {
                match act & 128 {
                    0 => session.close(id),
                    _ => session.abort(id),
                }
                assert!(session.front_bytes(id).is_err(), "a closed stream is read");
                open.retain(|other| *other != id);
            }
            (9, Some(id)) => {
                let most = session.direct_capacity(id).unwrap_or(0);
                let mut frame = vec![0; adit_smux_proto::FRAME_HEADER + most];
                assert_eq!(session.seal_frame(id, &mut frame).is_ok(), most > 0);
            }
            (10, _) => {
                let due = session.poll_timeout();
                let silent = session.handle_timeout(Time(now));
                assert!(silent.is_ok() || due.is_some_and(|due| due.0 <= now));
            }
            _ => {
                let mut out = [0; 64];
                let len = session.poll_output(&mut out[..16 + script.read_below(48)]);
                assert!(
                    len > 0 || !session.wants_output(),
                    "nothing fits where a frame does"
                );
                while session.poll_event().is_some() {}
            }
        }
        assert!(session.stream_count() <= MAX_STREAMS);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let flags = script.read_u8();
    if flags & 64 == 0 {
        let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
        let wire = match flags & 32 {
            0 => read_frames(&mut ActionScript::new(bytes), flags),
            _ => bytes.to_vec(),
        };
        let bytes = &wire[..];
        let _ = SplitInput { sizes, bytes }
            .assert_split_independent(|wire, pieces| run_session(flags, wire, pieces));
    } else {
        let acts = script.read_u16();
        let acts = script.take_up_to(usize::from(acts) % 512);
        let wire = read_frames(&mut script, flags);
        check_actions(flags, &mut ActionScript::new(acts), &wire);
    }
});
