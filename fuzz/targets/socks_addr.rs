//! The address form of RFC 1928, section 5: a parsed address is encoded in the same way and parses
//! again.

#![no_main]

use adit_wire::{AddrError, MAX_ADDR_LEN, encode_addr, parse_addr};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse_addr(bytes) {
        Ok((target, used)) => {
            assert!(used <= bytes.len() && used <= MAX_ADDR_LEN);
            let mut again = Vec::new();
            encode_addr(&target, &mut again);
            assert_eq!(again.len(), target.addr_len());
            assert_eq!(parse_addr(&again), Ok((target.clone(), again.len())));
            // Every prefix of it waits for more, and says for how much.
            for cut in 0..used {
                let short = parse_addr(&bytes[..cut]);
                assert!(
                    matches!(short, Err(AddrError::Incomplete { total }) if total > cut && total <= used)
                );
            }
            // A plain name parses the same in a URL; a log escapes the others.
            let text = target.to_string();
            if text.is_ascii()
                && !text.contains('\\')
                && let Ok(read) = text.parse()
            {
                assert_eq!(target, read);
            }
        }
        Err(AddrError::Incomplete { total }) => {
            assert!(total > bytes.len() && total <= MAX_ADDR_LEN)
        }
        Err(AddrError::Type(_) | AddrError::Name) => {}
    }
});
