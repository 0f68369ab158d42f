//! DER formats of private keys: PKCS#1 (RFC 8017 appendix A.1.2), SEC 1 (RFC 5915), PKCS#8 (RFC
//! 5958).

use adit_crypto::{EcdsaKey, Ed25519Key, NistCurve, RsaKey, RsaParts, Secret};

use super::error::KeyError;
use super::private_key::AlgorithmKey;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]`, constructed.
const CONTEXT_0: u8 = 0xa0;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 34];
const P521: &[u8] = &[0x2b, 0x81, 4, 0, 35];

const MALFORMED: KeyError = KeyError::Malformed("DER of a private key");

/// Parses an `RSAPrivateKey`.
pub(super) fn parse_pkcs1(document: &[u8]) -> Result<AlgorithmKey, KeyError> {
    let mut whole = DerReader(document);
    let mut s = DerReader(whole.read_value(SEQUENCE)?);
    if s.read_value(INTEGER)? != [0] {
        return Err(KeyError::Unsupported(
            "an RSA key with more than two primes",
        ));
    }
    let (n, e, d) = (
        s.read_value(INTEGER)?,
        s.read_value(INTEGER)?,
        s.read_value(INTEGER)?,
    );
    let (p, q) = (s.read_value(INTEGER)?, s.read_value(INTEGER)?);
    // d modulo p − 1 and q − 1 are recomputed.
    s.read_value(INTEGER)?;
    s.read_value(INTEGER)?;
    let q_inverse = s.read_value(INTEGER)?;
    let parts = RsaParts {
        n,
        e,
        d,
        p,
        q,
        q_inverse,
    };
    Ok(AlgorithmKey::Rsa(Box::new(RsaKey::from_parts(&parts)?)))
}

/// Parses an `ECPrivateKey`; `curve` is from the enclosing structure, which may be the only one to
/// specify it.
pub(super) fn parse_sec1(
    document: &[u8],
    curve: Option<NistCurve>,
) -> Result<AlgorithmKey, KeyError> {
    let mut whole = DerReader(document);
    let mut s = DerReader(whole.read_value(SEQUENCE)?);
    if s.read_value(INTEGER)? != [1] {
        return Err(MALFORMED);
    }
    let scalar = s.read_value(OCTETS)?;
    let inside = match s.read_value(CONTEXT_0) {
        Ok(parameters) => Some(curve_by_oid(DerReader(parameters).read_value(OID)?)?),
        Err(_) => None,
    };
    let curve = match (curve, inside) {
        (Some(a), Some(b)) if a != b => return Err(MALFORMED),
        (a, b) => a.or(b).ok_or(MALFORMED)?,
    };
    Ok(AlgorithmKey::Ecdsa(EcdsaKey::from_scalar(curve, scalar)?))
}

/// Parses an unencrypted `PrivateKeyInfo`.
pub(super) fn parse_pkcs8(document: &[u8]) -> Result<AlgorithmKey, KeyError> {
    let mut whole = DerReader(document);
    let mut s = DerReader(whole.read_value(SEQUENCE)?);
    if !matches!(s.read_value(INTEGER)?, [0 | 1]) {
        return Err(MALFORMED);
    }
    let mut algorithm = DerReader(s.read_value(SEQUENCE)?);
    let key = s.read_value(OCTETS)?;
    match algorithm.read_value(OID)? {
        RSA => parse_pkcs1(key),
        EC => parse_sec1(key, Some(curve_by_oid(algorithm.read_value(OID)?)?)),
        ED25519 => {
            let seed = DerReader(key)
                .read_value(OCTETS)?
                .try_into()
                .map_err(|_| MALFORMED)?;
            Ok(AlgorithmKey::Ed25519(Ed25519Key::from_seed(Secret::new(
                seed,
            ))?))
        }
        _ => Err(KeyError::Unsupported("the algorithm in the PKCS#8 file")),
    }
}

fn curve_by_oid(oid: &[u8]) -> Result<NistCurve, KeyError> {
    match oid {
        P256 => Ok(NistCurve::P256),
        P384 => Ok(NistCurve::P384),
        P521 => Ok(NistCurve::P521),
        _ => Err(KeyError::Unsupported("the elliptic curve")),
    }
}

/// Reads values from the front.
struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    /// Returns the content of the next value, which must have this tag; otherwise, nothing is
    /// consumed.
    fn read_value(&mut self, tag: u8) -> Result<&'a [u8], KeyError> {
        let (head, rest) = self.0.split_at_checked(2).ok_or(MALFORMED)?;
        let (len, rest) = match head {
            [found, _] if *found != tag => return Err(MALFORMED),
            [_, len @ 0..=0x7f] => (usize::from(*len), rest),
            [_, 0x81] => {
                let ([a], rest) = rest.split_first_chunk().ok_or(MALFORMED)?;
                (usize::from(*a), rest)
            }
            [_, 0x82] => {
                let (len, rest) = rest.split_first_chunk().ok_or(MALFORMED)?;
                (usize::from(u16::from_be_bytes(*len)), rest)
            }
            _ => return Err(MALFORMED),
        };
        let (content, rest) = rest.split_at_checked(len).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(content)
    }
}
