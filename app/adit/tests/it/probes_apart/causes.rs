//! The probes of a prober without the key.

use adit_interop::BytePattern;
use adit_interop::hostile_clients::{AfterWrite, WriteMode};
use adit_interop::probe::ProbePlan;

use super::kinds::{ListenerCase, Recording};

/// The maximum of the lengths that are all tried.
const LONGEST: usize = 1024;
/// An additional, very long one.
const HUGE: usize = 64 << 10;
/// Every that many lengths are tried if not all are.
const STRIDE: usize = 13;

/// Bytes, and the reason for which they are refused.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub(crate) cause: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: WriteMode,
    pub(crate) after_write: AfterWrite,
}

type Cause = (String, Vec<u8>);

impl Probe {
    fn new((cause, bytes): Cause, after_write: AfterWrite) -> Self {
        Self {
            cause,
            bytes,
            mode: WriteMode::OneWrite,
            after_write,
        }
    }

    pub(crate) fn plan(&self) -> ProbePlan<'_> {
        ProbePlan {
            bytes: &self.bytes,
            mode: self.mode,
            after_write: self.after_write,
        }
    }
}

fn with_each(endings: &[AfterWrite], causes: Vec<Cause>) -> Vec<Probe> {
    let each = |cause: Cause| {
        let one = move |ending: &AfterWrite| Probe::new(cause.clone(), *ending);
        endings.iter().map(one).collect::<Vec<_>>()
    };
    causes.into_iter().flat_map(each).collect()
}

fn garbage(len: usize, seed: u64) -> Vec<u8> {
    BytePattern::new(seed).next_bytes(len)
}

fn changed(genuine: &[u8], what: &str, places: impl IntoIterator<Item = usize>) -> Cause {
    let mut bytes = genuine.to_vec();
    for place in places {
        bytes[place] ^= 0x55;
    }
    (format!("a replay with {what} changed"), bytes)
}

/// The forms that were observed in practice.
fn edited(genuine: &[u8]) -> Vec<Cause> {
    vec![
        changed(genuine, "byte 0", [0]),
        changed(genuine, "byte 16", [16]),
        changed(genuine, "bytes 0 to 7, 62 and 63", (0..8).chain([62, 63])),
        changed(genuine, "bytes 6 and 16", [6, 16]),
        changed(genuine, "bytes 16 to 32", 16..=32),
    ]
}

/// Returns garbage of each length, with each ending.
///
/// Unless `all` is true, only some lengths are used in addition to those around a header.
pub(crate) fn lengths(kind: &ListenerCase, all: bool) -> Vec<Probe> {
    let near = |len: usize| len <= 2 || len.abs_diff(kind.head) <= 2;
    let some = |len: &usize| all || near(*len) || *len == 221 || len.is_multiple_of(STRIDE);
    let lengths = (1..=LONGEST).filter(some).chain([HUGE]);
    let one = |len: usize| (format!("{len} bytes of garbage"), garbage(len, len as u64));
    with_each(
        &[AfterWrite::Close, AfterWrite::HalfClose, AfterWrite::Hold],
        lengths.map(one).collect(),
    )
}

/// Returns the variations of a recording, held and half-closed.
///
/// Unless `all` is true, only some bytes are changed and some lengths cut in addition to those around a
/// header, with fewer exact replays.
pub(crate) fn replays(kind: &ListenerCase, seen: &Recording, all: bool) -> Vec<Probe> {
    let genuine = &seen.request;
    let some = |n: &usize| all || n.abs_diff(kind.head) <= 2 || n.is_multiple_of(STRIDE);
    let mut made = vec![
        ("two replays".to_owned(), genuine.repeat(2)),
        ("the server's own bytes".to_owned(), seen.answer.clone()),
        (
            "the server's own bytes, cut".to_owned(),
            seen.answer[..kind.head].to_vec(),
        ),
    ];
    made.extend(edited(genuine));
    for n in 0..if all { 50 } else { 5 } {
        made.push((format!("exact replay {n}"), genuine.clone()));
    }
    for place in (0..128).filter(some) {
        made.push(changed(genuine, &format!("byte {place}"), [place]));
    }
    for cut in (1..genuine.len()).filter(some) {
        let what = format!("a replay cut after {cut} bytes");
        made.push((what, genuine[..cut].to_vec()));
    }
    let mut made = with_each(&[AfterWrite::HalfClose, AfterWrite::Hold], made);
    for (cause, bytes) in [
        ("almost a header", garbage(kind.head - 1, 3)),
        ("a little more than a header", garbage(kind.head + 1, 4)),
        ("a replay", genuine.clone()),
    ] {
        made.push(Probe {
            mode: WriteMode::ByteByByte,
            ..Probe::new((format!("{cause}, slowly"), bytes), AfterWrite::Hold)
        });
    }
    made
}

/// Returns one probe of each cause whose time is compared: long enough to be judged, but at most two
/// first flights, because sending takes time too. `old` is from before a restart; `seed` determines
/// the garbage.
pub(crate) fn whole(
    kind: &ListenerCase,
    seen: &Recording,
    old: Option<&Recording>,
    seed: u64,
) -> Vec<Probe> {
    let genuine = &seen.request;
    let len = genuine.len();
    let mut causes: Vec<Cause> = [
        ("garbage", garbage(len, seed)),
        ("a header of garbage", garbage(kind.head, seed + 1)),
        ("221 bytes of garbage", garbage(221, seed + 2)),
        ("an exact replay", genuine.clone()),
        ("two replays", genuine.repeat(2)),
        ("a replay cut after a header", genuine[..kind.head].to_vec()),
        ("a replay cut before its end", genuine[..len - 1].to_vec()),
        ("the server's own bytes", seen.answer.clone()),
    ]
    .map(|(cause, bytes)| (cause.to_owned(), bytes))
    .into();
    causes.push(changed(genuine, "a header's last byte", [kind.head - 1]));
    causes.push(changed(genuine, "what follows a header", [kind.head]));
    causes.extend(edited(genuine));
    if let Some(old) = old {
        let what = "a replay from before the restart";
        causes.push((what.to_owned(), old.request.clone()));
    }
    with_each(&[AfterWrite::Hold], causes)
}

/// Returns one probe of each cause that is too short to be judged, with each of these endings.
pub(crate) fn short(
    kind: &ListenerCase,
    seen: &Recording,
    endings: &[AfterWrite],
    seed: u64,
) -> Vec<Probe> {
    let most = kind.head - 1;
    let little = 1 + usize::try_from(seed % 15).unwrap();
    let causes = [
        ("a little garbage", garbage(little, seed)),
        ("almost a header of garbage", garbage(most, seed + 1)),
        ("a cut salt", seen.request[..7].to_vec()),
        ("almost a genuine header", seen.request[..most].to_vec()),
        ("the server's own bytes, cut", seen.answer[..most].to_vec()),
    ]
    .map(|(cause, bytes)| (cause.to_owned(), bytes));
    with_each(endings, causes.into())
}
