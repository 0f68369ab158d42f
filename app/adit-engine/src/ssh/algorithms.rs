//! Conversion of a plan's algorithms to those of a transport.

use adit_config::SshAlgorithms;
use adit_ssh::preferred_algorithms;
use adit_ssh_proto::algorithm::{AlgorithmPreferences, Compression};

/// Returns the algorithms of a client: those configured, otherwise the best order for this machine.
pub(super) fn client_algorithms(offer: &SshAlgorithms) -> AlgorithmPreferences {
    configured_or_default(offer, preferred_algorithms())
}

/// Returns the algorithms of a server: the same, but finite-field Diffie–Hellman only if configured.
pub(super) fn server_algorithms(offer: &SshAlgorithms) -> AlgorithmPreferences {
    configured_or_default(offer, preferred_algorithms().for_server())
}

fn configured_or_default(
    offer: &SshAlgorithms,
    usual: AlgorithmPreferences,
) -> AlgorithmPreferences {
    AlgorithmPreferences {
        kex: or_default(&offer.kex, usual.kex),
        host_key: usual.host_key,
        cipher: or_default(&offer.cipher, usual.cipher),
        mac: or_default(&offer.mac, usual.mac),
        compression: if offer.compression {
            vec![Compression::ZlibDelayed, Compression::None]
        } else {
            vec![Compression::None]
        },
    }
}

fn or_default<T: Clone>(written: &[T], usual: Vec<T>) -> Vec<T> {
    if written.is_empty() {
        usual
    } else {
        written.to_vec()
    }
}
