//! Keys compared with those made by OpenSSH's own tools: `vectors/ssh/keys`.

mod certificates;
mod files;
mod lines;

use super::*;

macro_rules! vector {
    ($name:literal) => {
        include_str!(concat!("../../../../../vectors/ssh/keys/", $name))
    };
}
pub(super) use vector;

/// Passphrase of all encrypted files.
const PASSPHRASE: &[u8] = b"correct horse";

fn public(line: &str) -> PublicKey {
    PublicKey::from_line(line).unwrap().0
}
