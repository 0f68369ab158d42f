//! `go_quiet`: the hello of a browser, in which the random field is a proof of the key.
//!
//! Whoever sends a hello without that proof is relayed to a real web server and sees nothing but
//! that. The rest of the handshake only has the right lengths, and the data stands in records as
//! it came from above.

mod answer;
mod hello;
mod proof;

pub(crate) use answer::{Answer, end, read_answer};
pub use hello::Browser;
pub(crate) use hello::{Chance, Hello, TICKET};
pub(crate) use proof::{ProofKey, REMEMBERED};

use crate::ParamError;

/// The key of a side; an empty one is a forgotten one.
pub(crate) fn proof_key(password: &[u8]) -> Result<Box<ProofKey>, ParamError> {
    if password.is_empty() {
        return Err(ParamError::NoKey);
    }
    ProofKey::new(password)
        .map(Box::new)
        .map_err(|_| ParamError::NoKey)
}
