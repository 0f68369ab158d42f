//! Rule sets of sing-box in their binary format (`.srs`), versions 1 to 5.
//!
//! `SRS`, the version, and a zlib stream of rules, each a list of items with their type.

use core::net::IpAddr;

use adit_wire::{EndOfInput, Reader};

use super::adblock::add_filter;
use super::limits::{Limits, Loaded, Place, ReadError};
use super::protobuf::read_varint;
use super::sing_box::{ConditionGroup, MAX_VERSION, SingBoxRule};
use super::sing_box_json::add_range;
use super::succinct::{Stop, SuccinctSet};
use super::tally::Tally;
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::request::Transport;

/// The start of a file.
const MAGIC: &[u8] = b"SRS";

/// At the end of a key: the name and all below.
const ROOT: u8 = b'\n';
/// At the end of a key: all names that end with it.
const SUFFIX: u8 = b'\r';
/// At the other side of a key of AdGuard: anything may follow.
const OPEN: u8 = 8;

const DAMAGED: ReadError = ReadError::Format("a rule set of sing-box");

impl From<EndOfInput> for ReadError {
    fn from(_: EndOfInput) -> Self {
        DAMAGED
    }
}

/// Reads a rule set of sing-box in its binary format. Conditions on the device and its programs are not
/// supported: rules that have one are skipped with a note.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit, is damaged or has an unknown version.
pub fn read_srs(document: &[u8], limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let rest = document.strip_prefix(MAGIC).ok_or(DAMAGED)?;
    let (version, packed) = rest.split_first().ok_or(DAMAGED)?;
    if !(1..=MAX_VERSION).contains(&u64::from(*version)) {
        return Err(ReadError::Version((*version).into()));
    }
    let content = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, limits.bytes);
    let content = content.map_err(|why| match why.status {
        miniz_oxide::inflate::TINFLStatus::HasMoreOutput => ReadError::TooLong(limits.bytes),
        _ => DAMAGED,
    })?;
    let mut from = Reader::new(&content);
    let mut set = RuleSetBuilder::new();
    let count = read_varint(&mut from).ok_or(DAMAGED)?;
    for number in 1..=count {
        let place = Place::Entry(usize::try_from(number).map_err(|_| DAMAGED)?);
        let rule = read_rule(&mut from, place, limits.depth, &mut tally)?;
        rule.finish(place, &mut set, &mut tally)?;
    }
    Ok(tally.finish(set))
}

fn read_rule(
    from: &mut Reader<'_>,
    place: Place,
    depth: usize,
    tally: &mut Tally<'_>,
) -> Result<SingBoxRule, ReadError> {
    let depth = depth.checked_sub(1);
    let depth = depth.ok_or(ReadError::TooDeep(tally.limits.depth))?;
    let mut rule = SingBoxRule::default();
    tally.see()?;
    match from.u8()? {
        0 => while read_item(from, place, &mut rule, tally)? {},
        1 => {
            rule.logical = Some(match from.u8()? {
                0 => true,
                1 => false,
                _ => return Err(DAMAGED),
            });
            for _ in 0..read_varint(from).ok_or(DAMAGED)? {
                rule.parts.push(read_rule(from, place, depth, tally)?);
            }
            rule.invert = from.u8()? != 0;
        }
        _ => return Err(DAMAGED),
    }
    Ok(rule)
}

/// Reads an item of a rule. Returns false after the last one.
fn read_item(
    from: &mut Reader<'_>,
    place: Place,
    rule: &mut SingBoxRule,
    tally: &mut Tally<'_>,
) -> Result<bool, ReadError> {
    let kind = from.u8()?;
    let group = match kind {
        1 => ConditionGroup::Transports,
        5 => ConditionGroup::Source,
        7 | 8 => ConditionGroup::SourcePorts,
        9 | 10 => ConditionGroup::Ports,
        _ => ConditionGroup::Destination,
    };
    match kind {
        0 => {
            read_numbers(from, |_| Ok(()))?;
            rule.refuse("query_type");
        }
        1 | 3 | 4 | 8 | 10 => read_texts(from, |text| {
            rule.add(group, place, text, tally, |set| add_text(set, kind, text))
        })?,
        2 => read_names(from, place, rule, tally)?,
        5 | 6 => read_networks(from, |start, end| {
            rule.add(group, place, "", tally, |set| match kind {
                5 => set.add_source_range(start, end),
                _ => set.add_range(start, end),
            })
        })?,
        7 | 9 => read_numbers(from, |port| {
            rule.add(group, place, "", tally, |set| {
                match kind {
                    7 => set.add_source_ports(port..=port),
                    _ => set.add_ports(port..=port),
                }
                Ok(())
            })
        })?,
        11..=15 | 17 => {
            read_texts(from, |_| tally.see())?;
            rule.refuse("a program or a device");
        }
        16 => read_filters(from, place, rule, tally)?,
        18 => {
            let count = read_length(from)?;
            from.take(count)?;
            rule.refuse("network_type");
        }
        19 | 20 => rule.refuse("network_is_expensive"),
        21 => {
            for _ in 0..read_length(from)? {
                from.u8()?;
                skip_prefixes(from)?;
            }
            rule.refuse("network_interface_address");
        }
        22 => {
            skip_prefixes(from)?;
            rule.refuse("default_interface_address");
        }
        0xff => {
            rule.invert = from.u8()? != 0;
            return Ok(false);
        }
        // Without its form the rest cannot be read.
        _ => return Err(DAMAGED),
    }
    Ok(true)
}

fn add_text(set: &mut RuleSetBuilder, kind: u8, text: &str) -> Result<(), AddError> {
    match kind {
        1 => {
            let transport = Transport::parse(text).ok_or(AddError::Transport)?;
            set.add_transport(transport);
            Ok(())
        }
        3 => set.add_keyword(text),
        4 => set.add_pattern(text),
        8 => add_range(set, true, text),
        _ => add_range(set, false, text),
    }
}

fn read_length(from: &mut Reader<'_>) -> Result<usize, ReadError> {
    let len = read_varint(from).ok_or(DAMAGED)?;
    usize::try_from(len).map_err(|_| DAMAGED)
}

fn read_texts(
    from: &mut Reader<'_>,
    mut receive: impl FnMut(&str) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    for _ in 0..read_length(from)? {
        let len = read_length(from)?;
        let text = core::str::from_utf8(from.take(len)?).map_err(|_| DAMAGED)?;
        receive(text)?;
    }
    Ok(())
}

fn read_numbers(
    from: &mut Reader<'_>,
    mut receive: impl FnMut(u16) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    for _ in 0..read_length(from)? {
        receive(from.u16()?)?;
    }
    Ok(())
}

fn read_networks(
    from: &mut Reader<'_>,
    mut receive: impl FnMut(IpAddr, IpAddr) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    if from.u8()? != 1 {
        return Err(DAMAGED);
    }
    for _ in 0..from.u64()? {
        let start = read_address(from)?;
        receive(start, read_address(from)?)?;
    }
    Ok(())
}

fn read_address(from: &mut Reader<'_>) -> Result<IpAddr, ReadError> {
    match read_length(from)? {
        4 => Ok(from.array::<4>()?.into()),
        16 => Ok(from.array::<16>()?.into()),
        _ => Err(DAMAGED),
    }
}

fn skip_prefixes(from: &mut Reader<'_>) -> Result<(), ReadError> {
    for _ in 0..read_length(from)? {
        read_address(from)?;
        from.u8()?;
    }
    Ok(())
}

/// Reads names, of which some are domains.
fn read_names(
    from: &mut Reader<'_>,
    place: Place,
    rule: &mut SingBoxRule,
    tally: &mut Tally<'_>,
) -> Result<(), ReadError> {
    let set = SuccinctSet::read(from).ok_or(DAMAGED)?;
    visit(&set, |key| {
        let (mark, name) = split_mark(key);
        rule.add(ConditionGroup::Destination, place, name, tally, |to| {
            match (mark, name.strip_prefix('.')) {
                (Some(ROOT), None) => to.add_domain(name),
                (Some(ROOT), Some(name)) | (Some(SUFFIX), Some(name)) => to.add_below(name),
                // In the oldest files a suffix may begin inside of a label.
                (Some(SUFFIX), None) => to.add_glob(&format!("**{name}")),
                _ => to.add_exact(name),
            }
        })
    })
}

/// Reads filters of AdGuard.
fn read_filters(
    from: &mut Reader<'_>,
    place: Place,
    rule: &mut SingBoxRule,
    tally: &mut Tally<'_>,
) -> Result<(), ReadError> {
    let set = SuccinctSet::read(from).ok_or(DAMAGED)?;
    visit(&set, |key| {
        let (mark, name) = split_mark(key);
        let (end, name) = match name.strip_suffix(char::from(OPEN)) {
            Some(name) => ("", name),
            None => ("^", name),
        };
        let start = match mark {
            Some(ROOT) => "||",
            Some(_) => "",
            None => "|",
        };
        let filter = format!("{start}{name}{end}");
        rule.add(ConditionGroup::Destination, place, &filter, tally, |to| {
            add_filter(&filter, to)
        })
    })
}

/// Returns the mark in front of a name. It is at the end of the key, which is reversed.
fn split_mark(key: &str) -> (Option<u8>, &str) {
    let mark = key
        .bytes()
        .next()
        .filter(|byte| matches!(*byte, ROOT | SUFFIX));
    let name = if mark.is_some() { key.get(1..) } else { None };
    (mark, name.unwrap_or(key))
}

fn visit(
    set: &SuccinctSet<'_>,
    mut receive: impl FnMut(&str) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let visited = set.visit(|key| {
        let key = core::str::from_utf8(key).map_err(|_| DAMAGED)?;
        receive(key)
    });
    visited.map_err(|stop| match stop {
        Stop::Damaged => DAMAGED,
        Stop::Receiver(why) => why,
    })
}
