//! Tokens, memberships and local states of fleets: any bytes are one or a problem, and what is read is written the same.

#![no_main]

use adit_fleet::{JoinToken, LocalState, Membership};
use adit_fuzz::split_flags;
use adit_wire::FixedEntropy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    match flags % 3 {
        0 => {
            let Ok(text) = std::str::from_utf8(input) else {
                return;
            };
            let Ok(token) = JoinToken::from_text(text) else {
                return;
            };
            let again = token.to_text().expect("what was read can be written");
            assert_eq!(JoinToken::from_text(&again).ok().as_ref(), Some(&token));
            assert!(
                token.open(input).is_err(),
                "no bytes of the fuzzer are authentic"
            );
        }
        1 => match Membership::from_json(input) {
            Ok(membership) => {
                let again = membership.to_json().expect("what was read can be written");
                let again = Membership::from_json(&again).expect("it can be read again");
                assert_eq!(again, membership);
                let mut rng = FixedEntropy::new(input.to_vec());
                let token = JoinToken::new(&membership, None, &mut rng);
                let sealed = token.seal(&membership, &mut rng).expect("it is short");
                assert_eq!(token.open(&sealed).ok().as_ref(), Some(&membership));
            }
            Err(why) => assert!(!why.to_string().is_empty()),
        },
        _ => {
            // Whole, and cut anywhere: reading ends, and depends on the content alone.
            let whole = LocalState::read_content(input, "fuzz", 1).ok();
            assert_eq!(whole, LocalState::read_content(input, "fuzz", 1).ok());
            if let Some((_, shorter)) = input.split_last() {
                let _ = LocalState::read_content(shorter, "fuzz", 1);
            }
        }
    }
});
