//! Files of the form of `/etc/hosts`, as lists of blocked names.

use core::net::IpAddr;

use super::limits::{Limits, Loaded, NoteKind, ReadError};
use super::tally::{Tally, shorten};
use super::text::{lines, note_encoding};
use crate::builder::RuleSetBuilder;

/// Names of the machine itself, with which such lists begin.
const LOCAL: &[&str] = &[
    "localhost",
    "localhost.localdomain",
    "local",
    "broadcasthost",
    "ip6-localhost",
    "ip6-loopback",
    "ip6-localnet",
    "ip6-mcastprefix",
    "ip6-allnodes",
    "ip6-allrouters",
    "ip6-allhosts",
    "0.0.0.0",
];

/// Reads a hosts file: lines of `0.0.0.0 name…`. Names match exactly. The address is unspecified or
/// loopback; a line with another one is skipped with a note, because it names a machine. Names of the
/// machine itself, such as `localhost`, are ignored.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit.
pub fn read_hosts(document: &[u8], limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut set = RuleSetBuilder::new();
    for (place, line) in lines(document) {
        let Some(line) = line else {
            tally.see()?;
            note_encoding(&mut tally, place);
            continue;
        };
        let text = line.split_once('#').map_or(line, |(text, _)| text);
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else { continue };
        let address = first.split_once('%').map_or(first, |(ip, _)| ip);
        let blocks = |ip: &IpAddr| ip.is_unspecified() || ip.is_loopback();
        let blocked = address.parse::<IpAddr>().ok().filter(blocks);
        let mut names = words.filter(|name| !LOCAL.contains(name)).peekable();
        let machine = address.parse::<IpAddr>().is_ok() && names.peek().is_none();
        if machine {
            continue;
        }
        if blocked.is_none() {
            tally.see()?;
            tally.note(place, NoteKind::Syntax(shorten(text.trim())));
            continue;
        }
        for name in names {
            tally.count(place, name, set.add_exact(name))?;
        }
    }
    Ok(tally.finish(set))
}
