//! The algorithms that the client offers.

use crate::ssh_config::{AlgorithmList, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_ssh::preferred_algorithms as usual;
use adit_ssh_proto::algorithm::{
    AlgorithmPreferences, Cipher, Compression, Kex, KeyAlgorithm, Mac,
};
use tracing::debug;

/// Returns the algorithms to offer: the order that suits this machine, as changed by the configuration.
pub(super) fn configured_algorithms(
    settings: &SshSettings,
) -> Result<AlgorithmPreferences, Failure> {
    let usual = usual();
    let compression = match settings.compression {
        true => vec![Compression::ZlibDelayed, Compression::None],
        false => vec![Compression::None, Compression::ZlibDelayed],
    };
    Ok(AlgorithmPreferences {
        kex: apply_list(
            "KexAlgorithms",
            settings.kex.as_ref(),
            usual.kex,
            Kex::name,
            Kex::by_name,
        )?,
        host_key: apply_list(
            "HostKeyAlgorithms",
            settings.host_key_algorithms.as_ref(),
            usual.host_key,
            KeyAlgorithm::name,
            KeyAlgorithm::by_name,
        )?,
        cipher: apply_list(
            "Ciphers",
            settings.ciphers.as_ref(),
            usual.cipher,
            Cipher::name,
            Cipher::by_name,
        )?,
        mac: apply_list(
            "MACs",
            settings.macs.as_ref(),
            usual.mac,
            Mac::name,
            Mac::by_name,
        )?,
        compression,
    })
}

/// Applies a configured list to the usual algorithms. Unsupported names are skipped.
fn apply_list<T: Copy>(
    keyword: &str,
    list: Option<&AlgorithmList>,
    usual: Vec<T>,
    name: fn(T) -> &'static str,
    by_name: fn(&str) -> Option<T>,
) -> Result<Vec<T>, Failure> {
    let Some(list) = list else {
        return Ok(usual);
    };
    let names: Vec<&str> = usual.iter().copied().map(name).collect();
    let wanted = list.apply_to(&names);
    let mut found = Vec::new();
    for one in &wanted {
        match by_name(one) {
            Some(algorithm) => found.push(algorithm),
            // The configuration is shared with programs that support other algorithms.
            None => debug!("{keyword}: ignoring unsupported `{one}`"),
        }
    }
    if found.is_empty() {
        let what = format!("{keyword}: none of `{}` is supported", wanted.join(","));
        return Err(Failure::new(FailureCode::Config, what)
            .with_hint(format!("supported are {}", names.join(","))));
    }
    Ok(found)
}
