//! UMAC of any message: the same in any pieces and with any instructions, and no other tag
//! verifies.

#![no_main]

use adit_fuzz::{Pieces, Script, alter};
use adit_umac::{Nonce, SimdLevel, Umac, UmacSession, WrongTag};
use libfuzzer_sys::fuzz_target;

struct Case<'a> {
    key: [u8; 16],
    nonce: Nonce,
    message: Pieces<'a>,
    place: u16,
    flip: u8,
}

fn check<const TAG: usize>(case: &Case<'_>) {
    let bytes = case.message.bytes;
    let plain = Umac::<TAG>::with_level(&case.key, SimdLevel::Portable).expect("plain code");
    let right = plain.compute_tag(case.nonce, bytes);
    for level in SimdLevel::ALL {
        let Some(umac) = Umac::<TAG>::with_level(&case.key, level) else {
            continue;
        };
        assert_eq!(
            umac.compute_tag(case.nonce, bytes),
            right,
            "{}",
            level.name()
        );
        let mut hasher = umac.new_hasher();
        let mut rest = bytes;
        for size in case.message.sizes.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*size));
            hasher.update(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(
            hasher.finish_tag(case.nonce),
            right,
            "{} in pieces",
            level.name()
        );
    }
    // A session that has other pads cached.
    let mut session = UmacSession::<TAG>::new(&case.key);
    let _ = session.compute_tag(Nonce::from(u64::from(case.place)), b"");
    assert_eq!(session.compute_tag(case.nonce, bytes), right);
    assert_eq!(
        session.verify_tag(case.nonce, bytes, right.as_ref()),
        Ok(())
    );
    let mut wrong = right.into_array();
    alter(&mut wrong, case.place, case.flip);
    assert_eq!(plain.verify_tag(case.nonce, bytes, &wrong), Err(WrongTag));
    let short = &right.as_ref()[..TAG - 1];
    assert_eq!(plain.verify_tag(case.nonce, bytes, short), Err(WrongTag));
    // One guess in 2⁹⁰ would pass.
    if TAG >= 12 && !bytes.is_empty() {
        let mut other = bytes.to_vec();
        alter(&mut other, case.place, case.flip);
        assert_eq!(
            plain.verify_tag(case.nonce, &other, right.as_ref()),
            Err(WrongTag)
        );
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let (flags, place, flip) = (script.byte(), script.short(), script.byte());
    let mut key = [0; 16];
    let given = script.take(16);
    key[..given.len()].copy_from_slice(given);
    let octets = script.take(usize::from(flags >> 4) + 1);
    let nonce = Nonce::new(octets).unwrap_or(Nonce::from(7));
    let Pieces { sizes, bytes } = Pieces::new(script.rest());
    let bytes = bytes.repeat(usize::from(flags >> 2) % 4 + 1);
    let case = Case {
        key,
        nonce,
        message: Pieces {
            sizes,
            bytes: &bytes,
        },
        place,
        flip,
    };
    match flags % 4 {
        0 => check::<4>(&case),
        1 => check::<8>(&case),
        2 => check::<12>(&case),
        _ => check::<16>(&case),
    }
});
