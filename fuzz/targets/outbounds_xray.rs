//! JSON of Xray: the whole document, or an outbound of a good one.

#![no_main]

use adit_fuzz::outbounds::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check(
    input,
    "c.json",
    (
        r#"{"outbounds":[{"protocol":"socks","tag":"a","settings":{"address":"a.b","port":1}},{"#,
        "}]}"
    )
));
