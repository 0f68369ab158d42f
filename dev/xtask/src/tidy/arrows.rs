//! The arrows between rings: app to io to proto, never back; dev may use all, none may use dev.

use std::collections::BTreeMap;

use crate::graph::{Arrow, Kind};

/// Arrows inside proto beside those to [`WORDS`].
const PROTO_PAIRS: &[(&str, &str)] = &[
    ("adit-kcp-proto", "adit-fec"),
    ("adit-ssh-proto", "adit-umac"),
];

/// The crates that every protocol may use.
const WORDS: &[&str] = &["adit-wire", "adit-crypto"];

/// Arrows to cryptography of others beside those of adit-crypto. adit-umac is for anyone, without
/// `std` and without the rest of us, and UMAC is built on one call of AES; of `digest` it implements
/// the traits, behind a feature.
const CRYPTO_PAIRS: &[(&str, &str)] = &[("adit-umac", "aes"), ("adit-umac", "digest")];

/// Cryptography of others, to be had through adit-crypto alone. `zeroize` and `subtle` are none:
/// they clear and compare memory.
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

/// What the manifests name against the rules.
pub(super) fn faults(rings: &BTreeMap<String, String>, arrows: &[Arrow]) -> Vec<String> {
    arrows
        .iter()
        .filter_map(|arrow| fault(rings, arrow))
        .collect()
}

fn fault(rings: &BTreeMap<String, String>, arrow: &Arrow) -> Option<String> {
    let Arrow { from, to, kind } = arrow;
    let ring = |name: &str| rings.get(name).map_or("", String::as_str);
    let (from_ring, to_ring) = (ring(from), ring(to));
    if *kind == Kind::Dev || from_ring == "dev" {
        return None;
    }
    if to_ring.is_empty() {
        let foreign = CRYPTO.contains(&to.as_str())
            && from != "adit-crypto"
            && !CRYPTO_PAIRS.contains(&(from.as_str(), to.as_str()));
        return foreign.then(|| format!("{from}: `{to}` is to be had through adit-crypto alone"));
    }
    let allowed = match (from_ring, to_ring) {
        ("proto", "proto") => {
            let pair = (from.as_str(), to.as_str());
            let word = WORDS.contains(&to.as_str()) && !WORDS.contains(&from.as_str());
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

    fn judge(from: &str, to: &str, kind: Kind) -> Option<String> {
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
        ];
        let rings = ours
            .iter()
            .map(|(n, r)| ((*n).to_owned(), (*r).to_owned()))
            .collect();
        let arrow = Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            kind,
        };
        faults(&rings, &[arrow]).pop()
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
            ("adit-engine", "anyhow"),
        ] {
            assert_eq!(judge(from, to, Kind::Normal), None);
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
        ] {
            assert!(judge(from, to, Kind::Normal).is_some(), "{from} -> {to}");
            assert!(judge(from, to, Kind::Build).is_some(), "{from} -> {to}");
        }
        assert_eq!(judge("adit-engine", "adit-interop", Kind::Dev), None);
    }

    #[test]
    fn foreign_cryptography_stands_behind_our_names() {
        assert!(judge("adit-socks", "aes", Kind::Normal).is_some());
        assert!(judge("adit-engine", "ring", Kind::Normal).is_some());
        assert_eq!(judge("adit-crypto", "aes", Kind::Normal), None);
        assert_eq!(judge("adit-umac", "aes", Kind::Normal), None);
        assert_eq!(judge("adit-umac", "digest", Kind::Normal), None);
        assert!(judge("adit-umac", "sha2", Kind::Normal).is_some());
        assert_eq!(judge("adit-interop", "blake3", Kind::Normal), None);
    }
}
