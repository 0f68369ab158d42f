//! Configuration files: any text is a plan, or a list of problems with places.

#![no_main]

use adit_fuzz::check_config_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    check_config_file(text);
});
