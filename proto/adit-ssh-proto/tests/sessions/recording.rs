//! A recorded session as text: both identities, then the peer's input, the resulting events and the
//! local output, in order.
//!
//! ```text
//! peer: SSH-2.0-OpenSSH_9.2p1      the peer's identification
//! user: me                         user name
//! > 5353482d…                      local output, hexadecimal; a line that starts with a space continues it
//! < 5353482d…                      the peer's output of one read
//! = the user is in                 an event caused by the bytes before it
//! ```

use core::fmt::Write as _;

/// Bytes per line.
const LINE: usize = 60;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recording {
    /// The peer's identification.
    pub(crate) peer: String,
    /// User name.
    pub(crate) user: String,
    pub(crate) turns: Vec<RecordedRead>,
}

/// Input of one read, and its results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordedRead {
    /// The peer's bytes; none in the first turn.
    pub(crate) heard: Vec<u8>,
    pub(crate) events: Vec<String>,
    /// Local bytes.
    pub(crate) said: Vec<u8>,
}

impl Recording {
    #[allow(dead_code, reason = "for the recorder alone")]
    pub(crate) fn write(&self) -> String {
        let mut out = format!("peer: {}\nuser: {}\n", self.peer, self.user);
        for turn in &self.turns {
            put_octets(&mut out, '<', &turn.heard);
            for event in &turn.events {
                let _ = writeln!(out, "= {event}");
            }
            put_octets(&mut out, '>', &turn.said);
        }
        out
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let mut head = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no `{name}`")).to_owned()
        };
        let (peer, user) = (head("peer: "), head("user: "));
        let mut turns = vec![RecordedRead::default()];
        let mut ours = true;
        for line in lines {
            let (mark, rest) = line.split_at(1);
            if mark == "<" {
                turns.push(RecordedRead::default());
            }
            let turn = turns.last_mut().unwrap();
            match mark {
                "=" => turn.events.push(rest[1..].to_owned()),
                "<" | ">" | " " => {
                    ours = if mark == " " { ours } else { mark == ">" };
                    let to = if ours {
                        &mut turn.said
                    } else {
                        &mut turn.heard
                    };
                    to.extend(octets(rest.trim_start()));
                }
                _ => panic!("what is `{line}`?"),
            }
        }
        Self { peer, user, turns }
    }
}

fn put_octets(out: &mut String, mark: char, octets: &[u8]) {
    let mut mark = mark;
    for line in octets.chunks(LINE) {
        let _ = write!(out, "{mark} ");
        for octet in line {
            let _ = write!(out, "{octet:02x}");
        }
        out.push('\n');
        mark = ' ';
    }
}

fn octets(digits: &str) -> impl Iterator<Item = u8> {
    assert!(digits.len().is_multiple_of(2), "half an octet");
    (0..digits.len() / 2).map(move |i| u8::from_str_radix(&digits[i * 2..][..2], 16).unwrap())
}
