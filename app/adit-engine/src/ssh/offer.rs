//! From what a plan offers to what a transport offers.

use adit_config::SshOffer;
use adit_session::ssh::preferred;
use adit_ssh::algorithm::{Compression, Preferred};

/// What is written, and where nothing is, what suits this machine.
pub(super) fn offered(offer: &SshOffer) -> Preferred {
    let usual = preferred();
    Preferred {
        kex: or(&offer.kex, usual.kex),
        host_key: usual.host_key,
        cipher: or(&offer.cipher, usual.cipher),
        mac: or(&offer.mac, usual.mac),
        compression: if offer.compression {
            vec![Compression::ZlibDelayed, Compression::None]
        } else {
            vec![Compression::None]
        },
    }
}

fn or<T: Clone>(written: &[T], usual: Vec<T>) -> Vec<T> {
    if written.is_empty() {
        usual
    } else {
        written.to_vec()
    }
}
