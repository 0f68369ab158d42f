//! UMAC of any message: the same in any pieces and with any instructions, and no other tag
//! verifies.

#![no_main]

use adit_fuzz::{ActionScript, SplitInput, alter_byte};
use adit_umac::{Nonce, SimdLevel, Umac, UmacSession, WrongTag};
use libfuzzer_sys::fuzz_target;

struct UmacCase<'a> {
    key: [u8; 16],
    nonce: Nonce,
    message: SplitInput<'a>,
    place: u16,
    flip: u8,
}

fn check_tag<const TAG: usize>(case: &UmacCase<'_>) {
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
    alter_byte(&mut wrong, case.place, case.flip);
    assert_eq!(plain.verify_tag(case.nonce, bytes, &wrong), Err(WrongTag));
    let short = &right.as_ref()[..TAG - 1];
    assert_eq!(plain.verify_tag(case.nonce, bytes, short), Err(WrongTag));
    // One guess in 2⁹⁰ would pass.
    if TAG >= 12 && !bytes.is_empty() {
        let mut other = bytes.to_vec();
        alter_byte(&mut other, case.place, case.flip);
        assert_eq!(
            plain.verify_tag(case.nonce, &other, right.as_ref()),
            Err(WrongTag)
        );
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let (flags, place, flip) = (script.read_u8(), script.read_u16(), script.read_u8());
    let mut key = [0; 16];
    let given = script.take_up_to(16);
    key[..given.len()].copy_from_slice(given);
    let octets = script.take_up_to(usize::from(flags >> 4) + 1);
    let nonce = Nonce::new(octets).unwrap_or(Nonce::from(7));
    let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
    let bytes = bytes.repeat(usize::from(flags >> 2) % 4 + 1);
    let case = UmacCase {
        key,
        nonce,
        message: SplitInput {
            sizes,
            bytes: &bytes,
        },
        place,
        flip,
    };
    match flags % 4 {
        0 => check_tag::<4>(&case),
        1 => check_tag::<8>(&case),
        2 => check_tag::<12>(&case),
        _ => check_tag::<16>(&case),
    }
});
