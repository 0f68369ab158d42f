//! Rule lists that are texts: hosts files, Adblock filters and the providers of Clash.

#![no_main]

use adit_fuzz::rules::{LIMITS, check};
use adit_fuzz::split_flags;
use adit_rules::Condition;
use adit_rules::read::{ClashBehavior, read_adblock, read_clash, read_hosts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    match flags % 6 {
        0 => check(read_hosts(input, &LIMITS)),
        1 => check(read_adblock(input, &LIMITS)),
        2 => check(read_clash(input, ClashBehavior::Domain, &LIMITS)),
        3 => check(read_clash(input, ClashBehavior::IpCidr, &LIMITS)),
        4 => check(read_clash(input, ClashBehavior::Classical, &LIMITS)),
        _ => {
            // Single conditions, as in a configuration.
            let Ok(text) = std::str::from_utf8(input) else {
                return;
            };
            if let Ok(condition) = Condition::parse(text) {
                assert_eq!(Condition::parse(&condition.to_string()), Ok(condition));
            }
        }
    }
});
