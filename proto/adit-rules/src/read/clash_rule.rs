//! Rules of Clash: `TYPE,value`, and `AND`, `OR` and `NOT` of them.

use super::limits::{NoteKind, Place, ReadError};
use super::tally::{Tally, shorten, value_note};
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::condition::parse_ports;
use crate::network_table::parse_network;
use crate::request::Transport;

/// Adds a rule, or notes why it is skipped.
pub(super) fn add_rule(
    text: &str,
    place: Place,
    set: &mut RuleSetBuilder,
    tally: &mut Tally<'_>,
) -> Result<(), ReadError> {
    tally.see()?;
    let mut part = RuleSetBuilder::new();
    match parse_rule(text, tally.limits.depth, &mut part) {
        Ok(()) => {
            set.append(part)?;
            tally.accepted += 1;
        }
        Err(NoteKind::Value {
            why: why @ AddError::TooMany(_),
            ..
        }) => return Err(ReadError::Set(why)),
        Err(kind) => tally.note(place, kind),
    }
    Ok(())
}

fn parse_rule(text: &str, depth: usize, set: &mut RuleSetBuilder) -> Result<(), NoteKind> {
    let syntax = || NoteKind::Syntax(shorten(text));
    let (kind, rest) = text.split_once(',').ok_or_else(syntax)?;
    let (kind, rest) = (kind.trim().to_ascii_uppercase(), rest.trim());
    let value = rest.split_once(',').map_or(rest, |(value, _)| value).trim();
    let depth = depth.checked_sub(1).ok_or_else(syntax)?;
    let network = || parse_network(value).ok_or(AddError::Network);
    let added = match kind.as_str() {
        "DOMAIN" => set.add_exact(value),
        "DOMAIN-SUFFIX" => set.add_domain(value.trim_start_matches('.')),
        "DOMAIN-KEYWORD" => set.add_keyword(value),
        // An expression may have commas.
        "DOMAIN-REGEX" => set.add_pattern(rest),
        "DOMAIN-WILDCARD" => set.add_glob(&value.split('*').collect::<Vec<_>>().join("**")),
        "IP-CIDR" | "IP-CIDR6" => network().map(|net| set.add_network(&net)),
        "SRC-IP-CIDR" => network().map(|net| set.add_source(&net)),
        "DST-PORT" => each_port(value, |ports| set.add_ports(ports)),
        "SRC-PORT" => each_port(value, |ports| set.add_source_ports(ports)),
        "IN-USER" => value.split('/').try_for_each(|user| set.add_user(user)),
        "IN-NAME" => value.split('/').try_for_each(|name| set.add_listener(name)),
        "NETWORK" => match Transport::parse(value) {
            Some(transport) => {
                set.add_transport(transport);
                Ok(())
            }
            None => Err(AddError::Transport),
        },
        "AND" | "OR" | "NOT" => return add_group(&kind, rest, depth, set),
        _ => return Err(NoteKind::Unsupported(shorten(&kind))),
    };
    added.map_err(|why| value_note(text, why))
}

/// Adds ports and ranges with `/` between them.
fn each_port(
    text: &str,
    mut add: impl FnMut(core::ops::RangeInclusive<u16>),
) -> Result<(), AddError> {
    for part in text.split(['/', ',']) {
        add(parse_ports(part.trim(), '-')?);
    }
    Ok(())
}

/// Adds `((rule),(rule))`.
fn add_group(
    kind: &str,
    list: &str,
    depth: usize,
    set: &mut RuleSetBuilder,
) -> Result<(), NoteKind> {
    let syntax = || NoteKind::Syntax(shorten(list));
    let parts = split_group(list).ok_or_else(syntax)?;
    let mut sets = Vec::new();
    for part in parts {
        let mut one = RuleSetBuilder::new();
        parse_rule(part, depth, &mut one)?;
        sets.push(one);
    }
    let value = |why| value_note(list, why);
    match (kind, sets.len()) {
        ("AND", 1..) => {
            let sets = sets.into_iter().map(RuleSetBuilder::build).collect();
            set.add_all(sets).map_err(value)
        }
        ("OR", 1..) => {
            let mut sets = sets.into_iter();
            sets.try_for_each(|part| set.append(part)).map_err(value)
        }
        ("NOT", 1) => {
            let mut sets = sets.into_iter();
            sets.try_for_each(|part| set.add_not(part.build()))
                .map_err(value)
        }
        _ => Err(syntax()),
    }
}

/// Returns the rules in `((rule),(rule))`, or `None` if the brackets do not match.
fn split_group(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0_usize;
    let (mut start, mut parts) = (0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                depth += 1;
                if depth == 2 {
                    start = at + 1;
                }
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                match depth {
                    0 => {
                        // A policy or options may follow.
                        let rest = text.get(at + 1..)?.trim_start();
                        return (rest.is_empty() || rest.starts_with(',')).then_some(parts);
                    }
                    1 => parts.push(text.get(start..at)?),
                    _ => {}
                }
            }
            ',' | ' ' => {}
            _ if depth < 2 => return None,
            _ => {}
        }
    }
    None
}
