//! `geosite.dat` and `geoip.dat` of v2ray: all categories in one message of protocol buffers.

use core::net::IpAddr;

use ipnet::IpNet;

use super::limits::{Limits, Loaded, NoteKind, Place, ReadError};
use super::protobuf::{Fields, Value, WireError};
use super::tally::{Tally, shorten};
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;

impl From<WireError> for ReadError {
    fn from(_: WireError) -> Self {
        Self::Format("a list of v2ray")
    }
}

/// Reads a category of `geosite.dat`, by its code in any case. Attributes after it restrict it to the
/// entries that have all of them: `google@cn`.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit, is damaged or does not have the category.
pub fn read_geosite(document: &[u8], category: &str, limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut set = RuleSetBuilder::new();
    let mut parts = category.split('@');
    let code = parts.next().unwrap_or_default();
    let attributes: Vec<&str> = parts.collect();
    let missing = || ReadError::Category(shorten(category));
    let mut number = 0;
    for field in Fields::new(find_category(document, code)?.ok_or_else(missing)?) {
        let (2, Value::Bytes(domain)) = field? else {
            continue;
        };
        number += 1;
        let domain = Domain::read(domain)?;
        let has = |wanted: &&str| {
            domain
                .attributes
                .iter()
                .any(|own| own.eq_ignore_ascii_case(wanted))
        };
        if !attributes.iter().all(has) {
            continue;
        }
        let place = Place::Entry(number);
        let added = match domain.kind {
            0 => set.add_keyword(domain.value),
            1 => set.add_pattern(domain.value),
            2 => set.add_domain(domain.value),
            3 => set.add_exact(domain.value),
            other => {
                tally.see()?;
                tally.note(place, NoteKind::Unsupported(format!("type {other}")));
                continue;
            }
        };
        tally.count(place, domain.value, added)?;
    }
    Ok(tally.finish(set))
}

/// Reads a category of `geoip.dat`, by its code in any case. `!` before it is every address outside of it.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit, is damaged or does not have the category.
pub fn read_geoip(document: &[u8], category: &str, limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut set = RuleSetBuilder::new();
    let (code, mut inverse) = match category.strip_prefix('!') {
        Some(code) => (code, true),
        None => (category, false),
    };
    let missing = || ReadError::Category(shorten(category));
    let mut number = 0;
    for field in Fields::new(find_category(document, code)?.ok_or_else(missing)?) {
        match field? {
            (2, Value::Bytes(cidr)) => {
                number += 1;
                let net = read_network(cidr)?;
                let added = net
                    .ok_or(AddError::Network)
                    .map(|net| set.add_network(&net));
                tally.count(Place::Entry(number), "", added)?;
            }
            (3, Value::Number(flag)) if flag != 0 => inverse = !inverse,
            _ => {}
        }
    }
    if inverse {
        let mut outside = RuleSetBuilder::new();
        outside.add_not(set.build())?;
        return Ok(tally.finish(outside));
    }
    Ok(tally.finish(set))
}

/// Returns the message of a category.
fn find_category<'a>(document: &'a [u8], code: &str) -> Result<Option<&'a [u8]>, WireError> {
    for field in Fields::new(document) {
        let (1, Value::Bytes(entry)) = field? else {
            continue;
        };
        for field in Fields::new(entry) {
            // The code is the first field of each message, and the rest need not be looked at.
            if let (1, Value::Bytes(own)) = field? {
                if own.eq_ignore_ascii_case(code.as_bytes()) {
                    return Ok(Some(entry));
                }
                break;
            }
        }
    }
    Ok(None)
}

struct Domain<'a> {
    kind: u64,
    value: &'a str,
    attributes: Vec<&'a str>,
}

impl<'a> Domain<'a> {
    fn read(message: &'a [u8]) -> Result<Self, WireError> {
        let text = |bytes| core::str::from_utf8(bytes).map_err(|_| WireError);
        let mut domain = Self {
            kind: 0,
            value: "",
            attributes: Vec::new(),
        };
        for field in Fields::new(message) {
            match field? {
                (1, Value::Number(kind)) => domain.kind = kind,
                (2, Value::Bytes(value)) => domain.value = text(value)?,
                (3, Value::Bytes(attribute)) => {
                    for field in Fields::new(attribute) {
                        if let (1, Value::Bytes(key)) = field? {
                            domain.attributes.push(text(key)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(domain)
    }
}

fn read_network(message: &[u8]) -> Result<Option<IpNet>, WireError> {
    let (mut ip, mut prefix) = (&[][..], 0);
    for field in Fields::new(message) {
        match field? {
            (1, Value::Bytes(bytes)) => ip = bytes,
            (2, Value::Number(bits)) => prefix = bits,
            _ => {}
        }
    }
    let address = match (<[u8; 4]>::try_from(ip), <[u8; 16]>::try_from(ip)) {
        (Ok(v4), _) => Some(IpAddr::from(v4)),
        (_, Ok(v6)) => Some(IpAddr::from(v6)),
        _ => None,
    };
    let prefix = u8::try_from(prefix).ok();
    let net = address
        .zip(prefix)
        .and_then(|(ip, bits)| IpNet::new(ip, bits).ok());
    Ok(net.map(|net| net.trunc()))
}
