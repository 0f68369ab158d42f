//! Hosts files and Adblock filters.

use super::{assert_matches, noted};
use crate::AddError;
use crate::read::{Limits, NoteKind, ReadError, read_adblock, read_hosts};

#[test]
fn hosts_are_read() {
    let text = b"# blocked\n127.0.0.1 localhost\n::1 ip6-localhost\nfe80::1%lo0 localhost\n\
        0.0.0.0 Ads.Example tracker.example # both\n\n  :: v6.example\n192.0.2.1 machine.example\n\
        0.0.0.0 bad_/name\nplain.example\n\xff\xff\n0.0.0.0 last.example";
    let loaded = read_hosts(text, &Limits::default()).unwrap();
    assert_eq!(loaded.accepted, 4);
    assert_eq!(noted(&loaded), [8, 9, 10, 11]);
    assert_eq!(
        loaded.notes[1].kind,
        NoteKind::Value {
            text: "bad_/name".to_owned(),
            why: AddError::Name
        }
    );
    assert_eq!(loaded.notes[3].kind, NoteKind::Encoding);
    let inside = [
        "ads.example",
        "tracker.example",
        "v6.example",
        "last.example",
    ];
    assert_matches(
        &loaded.set,
        &inside,
        &["localhost", "x.ads.example", "machine.example"],
    );
}

#[test]
fn filters_are_read() {
    let text = b"[Adblock Plus 2.0]\r\n! comment\r\n||ads.example^\r\n|exact.example^\r\n\
        ||*.wild.example^\r\n||track*.example^$important\r\n@@||good.ads.example^\r\n\
        ||path.example/x\r\nexample.com##.ad\r\n||opt.example^$third-party\r\n/regex/\r\n||open.example";
    let loaded = read_adblock(text, &Limits::default()).unwrap();
    assert_eq!(loaded.accepted, 5);
    assert_eq!(noted(&loaded), [8, 9, 10, 11, 12]);
    assert_matches(
        &loaded.set,
        &[
            "ads.example",
            "x.ads.example",
            "exact.example",
            "a.wild.example",
            "tracker7.example",
            "a.track.example",
        ],
        &[
            "good.ads.example",
            "x.good.ads.example",
            "x.exact.example",
            "wild.example",
            "opt.example",
            "open.example",
        ],
    );
}

#[test]
fn documents_are_bounded() {
    let text = b"0.0.0.0 a b c\n";
    let limits = Limits {
        entries: 2,
        ..Limits::default()
    };
    assert_eq!(
        read_hosts(text, &limits).unwrap_err(),
        ReadError::TooManyEntries(2)
    );
    let limits = Limits {
        bytes: 5,
        ..Limits::default()
    };
    assert_eq!(
        read_hosts(text, &limits).unwrap_err(),
        ReadError::TooLong(5)
    );
    let limits = Limits {
        notes: 1,
        ..Limits::default()
    };
    let loaded = read_hosts(b"a b\nc d\ne f\n", &limits).unwrap();
    assert_eq!((loaded.notes.len(), loaded.omitted_notes), (1, 2));
    assert_eq!(
        loaded.notes[0].to_string(),
        "line 1: `a b` is not an entry of this format"
    );
}
