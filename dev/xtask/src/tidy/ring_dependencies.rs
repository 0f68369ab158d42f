//! Dependencies between rings: app on io on proto, never back; dev and the examples may depend on all,
//! no crate on them.

use std::collections::BTreeMap;

use crate::package_graph::{Dependency, DependencyKind};

/// Dependencies inside proto in addition to those on [`SHARED_CRATES`].
const PROTO_PAIRS: &[(&str, &str)] = &[
    ("adit-kcp-proto", "adit-fec"),
    ("adit-ssh-proto", "adit-umac"),
];

/// The crates that every protocol may depend on.
const SHARED_CRATES: &[&str] = &["adit-wire", "adit-crypto"];

/// Dependencies on external cryptography in addition to those of adit-crypto. adit-umac is for any
/// project, without `std` and without adit's other crates, and UMAC is built on a single AES
/// operation; it implements the traits of `digest` behind a feature.
const CRYPTO_PAIRS: &[(&str, &str)] = &[("adit-umac", "aes"), ("adit-umac", "digest")];

/// External cryptography, available only through adit-crypto. `zeroize` and `subtle` are not in the
/// list: they clear and compare memory.
const CRYPTO: &[&str] = &[
    "aead",
    "aes",
    "aes-gcm",
    "aws-lc-rs",
    "aws-lc-sys",
    "blake2",
    "blake3",
    "blowfish",
    "camellia",
    "cast5",
    "cfb-mode",
    "chacha20",
    "chacha20poly1305",
    "cipher",
    "crypto_box",
    "ctr",
    "curve25519-dalek",
    "des",
    "digest",
    "ed25519-dalek",
    "ghash",
    "highway",
    "hkdf",
    "hmac",
    "idea",
    "md-5",
    "md5",
    "openssl",
    "orion",
    "poly1305",
    "rc2",
    "rc4",
    "ring",
    "salsa20",
    "sha1",
    "sha2",
    "sha3",
    "sodiumoxide",
    "x25519-dalek",
];

/// Returns the dependencies in manifests that violate the rules.
pub(super) fn find_faults(rings: &BTreeMap<String, String>, arrows: &[Dependency]) -> Vec<String> {
    arrows
        .iter()
        .filter_map(|arrow| find_fault(rings, arrow))
        .collect()
}

fn find_fault(rings: &BTreeMap<String, String>, arrow: &Dependency) -> Option<String> {
    let Dependency { from, to, kind } = arrow;
    let ring = |name: &str| rings.get(name).map_or("", String::as_str);
    let (from_ring, to_ring) = (ring(from), ring(to));
    if *kind == DependencyKind::Dev || matches!(from_ring, "dev" | "examples") {
        return None;
    }
    if to_ring.is_empty() {
        let foreign = CRYPTO.contains(&to.as_str())
            && from != "adit-crypto"
            && !CRYPTO_PAIRS.contains(&(from.as_str(), to.as_str()));
        return foreign.then(|| format!("{from}: `{to}` is available only through adit-crypto"));
    }
    let allowed = match (from_ring, to_ring) {
        ("proto", "proto") => {
            let pair = (from.as_str(), to.as_str());
            let word =
                SHARED_CRATES.contains(&to.as_str()) && !SHARED_CRATES.contains(&from.as_str());
            word || pair == ("adit-crypto", "adit-wire") || PROTO_PAIRS.contains(&pair)
        }
        ("io", "proto" | "io") | ("app", "proto" | "io" | "app") => true,
        _ => false,
    };
    (!allowed).then(|| format!("{from} ({from_ring}) must not depend on {to} ({to_ring})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(from: &str, to: &str, kind: DependencyKind) -> Option<String> {
        let ours = [
            ("adit-wire", "proto"),
            ("adit-crypto", "proto"),
            ("adit-socks", "proto"),
            ("adit-kcp-proto", "proto"),
            ("adit-fec", "proto"),
            ("adit-net", "io"),
            ("adit-stream", "io"),
            ("adit-engine", "app"),
            ("adit-config", "app"),
            ("adit-interop", "dev"),
            ("adit-examples", "examples"),
        ];
        let rings = ours
            .iter()
            .map(|(n, r)| ((*n).to_owned(), (*r).to_owned()))
            .collect();
        let arrow = Dependency {
            from: from.to_owned(),
            to: to.to_owned(),
            kind,
        };
        find_faults(&rings, &[arrow]).pop()
    }

    #[test]
    fn arrows_point_down() {
        for (from, to) in [
            ("adit-engine", "adit-config"),
            ("adit-engine", "adit-stream"),
            ("adit-stream", "adit-net"),
            ("adit-net", "adit-wire"),
            ("adit-socks", "adit-wire"),
            ("adit-socks", "adit-crypto"),
            ("adit-crypto", "adit-wire"),
            ("adit-kcp-proto", "adit-fec"),
            ("adit-interop", "adit-engine"),
            ("adit-examples", "adit-stream"),
            ("adit-engine", "anyhow"),
        ] {
            assert_eq!(judge(from, to, DependencyKind::Normal), None);
        }
    }

    #[test]
    fn arrows_up_or_across_are_faults() {
        for (from, to) in [
            ("adit-wire", "adit-crypto"),
            ("adit-wire", "adit-net"),
            ("adit-socks", "adit-kcp-proto"),
            ("adit-fec", "adit-kcp-proto"),
            ("adit-stream", "adit-engine"),
            ("adit-engine", "adit-interop"),
            ("adit-engine", "adit-examples"),
        ] {
            assert!(
                judge(from, to, DependencyKind::Normal).is_some(),
                "{from} -> {to}"
            );
            assert!(
                judge(from, to, DependencyKind::Build).is_some(),
                "{from} -> {to}"
            );
        }
        assert_eq!(
            judge("adit-engine", "adit-interop", DependencyKind::Dev),
            None
        );
    }

    #[test]
    fn foreign_cryptography_stands_behind_our_names() {
        assert!(judge("adit-socks", "aes", DependencyKind::Normal).is_some());
        assert!(judge("adit-engine", "ring", DependencyKind::Normal).is_some());
        assert_eq!(judge("adit-crypto", "aes", DependencyKind::Normal), None);
        assert_eq!(judge("adit-umac", "aes", DependencyKind::Normal), None);
        assert_eq!(judge("adit-umac", "digest", DependencyKind::Normal), None);
        assert!(judge("adit-umac", "sha2", DependencyKind::Normal).is_some());
        assert_eq!(
            judge("adit-interop", "blake3", DependencyKind::Normal),
            None
        );
    }
}
