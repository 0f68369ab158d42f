//! `go_quiet`: the hello of a browser, with a proof of the key in the random field.
//!
//! Peers that send a hello without that proof are relayed to a real web server and see only its
//! answers. The rest of the handshake only has the right lengths, and records contain the data of
//! the layer above unchanged.

mod answer;
mod hello;
mod proof;

pub(crate) use answer::{ServerAnswer, client_end, read_answer};
pub use hello::Browser;
pub(crate) use hello::{GoQuietHello, HelloRandom, TICKET_LEN};
pub(crate) use proof::{ProofKey, REMEMBER_SECS};

use crate::ParamError;

/// Creates the key of a side; an empty password is an error, since it is most likely forgotten.
pub(crate) fn proof_key(password: &[u8]) -> Result<Box<ProofKey>, ParamError> {
    if password.is_empty() {
        return Err(ParamError::NoKey);
    }
    ProofKey::new(password)
        .map(Box::new)
        .map_err(|_| ParamError::NoKey)
}
