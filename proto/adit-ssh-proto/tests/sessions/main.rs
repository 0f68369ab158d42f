//! Sessions with OpenSSH, replayed without it.
//!
//! The recordings contain the messages of OpenSSH. The local side receives them again, with the
//! same random numbers, and has to send the same bytes and report the same events as in the
//! recording: a different byte is a change of the protocol, of an algorithm or of a choice,
//! intended or not.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

mod plan;
mod player;
mod recording;

use adit_ssh_proto::Role;
use plan::Plan;
use player::Player;
use recording::{RecordedRead, Recording};

/// The recordings, in the order of the plans.
const RECORDINGS: [&str; 6] = [
    include_str!("../../vectors/ssh-sessions/client-gcm.txt"),
    include_str!("../../vectors/ssh-sessions/client-chacha.txt"),
    include_str!("../../vectors/ssh-sessions/client-ctr-umac.txt"),
    include_str!("../../vectors/ssh-sessions/server-gcm.txt"),
    include_str!("../../vectors/ssh-sessions/server-chacha.txt"),
    include_str!("../../vectors/ssh-sessions/server-ctr-umac.txt"),
];

fn each() -> impl Iterator<Item = (Plan, Recording)> {
    let recordings = RECORDINGS.iter().map(|text| Recording::read(text));
    Plan::ALL.into_iter().zip(recordings)
}

#[test]
fn we_say_what_we_said_then() {
    for (plan, recording) in each() {
        let name = plan.name;
        let mut player = Player::new(plan, &recording.user);
        for (number, turn) in recording.turns.iter().enumerate() {
            player.hear(&turn.heard);
            assert_eq!(player.events(), turn.events, "{name}, turn {number}");
            assert!(player.said() == turn.said, "{name}, turn {number}");
        }
        assert!(player.is_over(), "{name}");
    }
}

/// The output does not depend on the boundaries of the peer's reads.
#[test]
fn every_cut_gives_the_same() {
    for (plan, recording) in each() {
        for piece in [1, 7, 1000, usize::MAX] {
            let mut player = Player::new(plan, &recording.user);
            let (mut said, mut events) = (player.said(), Vec::new());
            for heard in heard(&recording).chunks(piece) {
                player.hear(heard);
                said.extend(player.said());
                events.extend(player.events());
            }
            let then = recording.turns.iter();
            let (old_said, old_events): (Vec<_>, Vec<_>) = then
                .map(|turn| (turn.said.clone(), turn.events.clone()))
                .unzip();
            assert!(said == old_said.concat(), "{}, {piece}", plan.name);
            assert_eq!(events, old_events.concat(), "{}, {piece}", plan.name);
            assert!(player.is_over());
        }
    }
}

/// Each recording contains what it is for: a re-key in the middle, and data under both sets of
/// keys.
#[test]
fn recordings_have_what_they_are_for() {
    for (plan, recording) in each() {
        assert!(
            recording.peer.starts_with("SSH-2.0-OpenSSH"),
            "{}",
            plan.name
        );
        let events: Vec<&String> = recording
            .turns
            .iter()
            .flat_map(|turn| &turn.events)
            .collect();
        let at = |start: &str| events.iter().position(|event| event.starts_with(start));
        let last = |start: &str| events.iter().rposition(|event| event.starts_with(start));
        let data = at("Stdout").unwrap()..last("Stdout").unwrap();
        let keys = |n: &usize| events[*n].starts_with("new keys: ");
        let fresh = data.clone().find(keys);
        let fresh = fresh.unwrap_or_else(|| panic!("{}: {events:#?}", plan.name));
        assert!(events[fresh].contains(plan.cipher.name()), "{}", plan.name);
        assert!(events[fresh].contains(plan.kex.name()), "{}", plan.name);
        let end = match plan.role {
            Role::Client => at("ExitStatus(7)"),
            Role::Server => at("the end: "),
        };
        assert!(end.unwrap() > fresh, "{}", plan.name);
    }
}

/// A single altered byte of the peer is always detected, once there are keys: the padding of
/// unencrypted packets has no meaning.
#[test]
fn an_octet_that_differs_is_seen() {
    for (plan, recording) in each() {
        let octets = heard(&recording);
        let turns = &recording.turns;
        let whole: Vec<_> = turns.iter().flat_map(|turn| turn.said.clone()).collect();
        let ready =
            |turn: &RecordedRead| turn.events.iter().any(|event| event.starts_with("keys: "));
        let ready = turns.iter().position(ready).unwrap();
        let clear: usize = turns[..=ready].iter().map(|turn| turn.heard.len()).sum();
        for at in (clear..octets.len()).step_by((octets.len() - clear) / 24) {
            let mut other = octets.clone();
            other[at] ^= 1;
            let mut player = Player::new(plan, &recording.user);
            let mut said = player.said();
            player.hear(&other);
            said.extend(player.said());
            assert!(said != whole, "{}: octet {at}", plan.name);
            assert!(!player.is_over(), "{}: octet {at}", plan.name);
        }
    }
}

fn heard(recording: &Recording) -> Vec<u8> {
    recording
        .turns
        .iter()
        .flat_map(|turn| turn.heard.clone())
        .collect()
}
