//! From what a plan offers to what a transport offers.

use adit_config::SshOffer;
use adit_ssh::preferred;
use adit_ssh_proto::algorithm::{Compression, Preferred};

/// What a client offers: what is written, and where nothing is, what suits this machine.
pub(super) fn offered(offer: &SshOffer) -> Preferred {
    offered_of(offer, preferred())
}

/// What a server offers: the same, but Diffie–Hellman in finite fields only where it is written.
pub(super) fn offered_by_server(offer: &SshOffer) -> Preferred {
    offered_of(offer, preferred().for_server())
}

fn offered_of(offer: &SshOffer, usual: Preferred) -> Preferred {
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
