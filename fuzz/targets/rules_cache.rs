//! Compiled rule sets: any bytes are a set or an error, and a set that was loaded is stored as the same.

#![no_main]

use adit_fuzz::rules::check_set;
use adit_fuzz::split_flags;
use adit_rules::RuleSet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let sealed = match flags & 1 {
        0 => input.to_vec(),
        // With the right length and checksum, so that the content is reached.
        _ => {
            let mut sealed = b"ADITRULE\0\x01".to_vec();
            sealed.extend((input.len() as u64).to_be_bytes());
            sealed.extend(crc32fast::hash(input).to_be_bytes());
            sealed.extend_from_slice(input);
            sealed
        }
    };
    match RuleSet::from_cache(&sealed) {
        Ok(set) => check_set(&set),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
