//! Conversion of a plan's algorithms to those of a transport.

use adit_config::SshOffer;
use adit_ssh::preferred;
use adit_ssh_proto::algorithm::{Compression, Preferred};

/// Returns the algorithms of a client: those configured, otherwise the best order for this machine.
pub(super) fn offered(offer: &SshOffer) -> Preferred {
    offered_of(offer, preferred())
}

/// Returns the algorithms of a server: the same, but finite-field Diffie–Hellman only if configured.
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
