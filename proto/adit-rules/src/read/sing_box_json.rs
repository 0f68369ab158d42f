//! Rule sets of sing-box in their source format (JSON), versions 1 to 5.

use super::json::Json;
use super::limits::{Limits, Loaded, NoteKind, ReadError};
use super::sing_box::{ConditionGroup, MAX_VERSION, SingBoxRule};
use super::tally::{Tally, shorten};
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::condition::parse_ports;
use crate::network_table::parse_network;
use crate::request::Transport;

/// Reads a rule set of sing-box in its source format. Conditions on the device and its programs are not
/// supported: rules that have one are skipped with a note.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit, is not JSON of this form or has an unknown version.
pub fn read_sing_box_json(document: &[u8], limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut set = RuleSetBuilder::new();
    let mut json = Json::new(document, limits.depth.saturating_mul(2).saturating_add(4));
    let mut version = None;
    json.object(|json, key| match key {
        "version" => {
            let number = json.word()?.parse();
            version = Some(number.map_err(|_| json.error("a version"))?);
            Ok(())
        }
        "rules" => json.array(|json| {
            let place = json.place();
            let rule = read_rule(json, limits.depth, &mut tally)?;
            rule.finish(place, &mut set, &mut tally)
        }),
        _ => json.skip(),
    })?;
    json.end()?;
    match version {
        Some(1..=MAX_VERSION) => Ok(tally.finish(set)),
        Some(other) => Err(ReadError::Version(other)),
        None => Err(json.error("the key `version`")),
    }
}

fn read_rule(
    json: &mut Json<'_>,
    depth: usize,
    tally: &mut Tally<'_>,
) -> Result<SingBoxRule, ReadError> {
    let depth = depth.checked_sub(1);
    let depth = depth.ok_or(ReadError::TooDeep(tally.limits.depth))?;
    let mut rule = SingBoxRule::default();
    tally.see()?;
    json.object(|json, key| {
        match key {
            "type" => match json.string()?.as_str() {
                "logical" => _ = rule.logical.get_or_insert(true),
                "default" | "" => {}
                other => rule.refuse(other),
            },
            "mode" => match json.string()?.as_str() {
                "and" => rule.logical = Some(true),
                "or" => rule.logical = Some(false),
                other => rule.refused = Some(NoteKind::Syntax(shorten(other))),
            },
            "rules" => json.array(|json| {
                rule.parts.push(read_rule(json, depth, tally)?);
                Ok(())
            })?,
            "invert" => rule.invert = json.bool()?,
            "port" | "source_port" => json.one_or_many(|json| {
                let (place, text) = (json.place(), json.word()?);
                let kind = kind_of(key);
                rule.add(kind, place, text, tally, |set| {
                    let port: u16 = text.parse().map_err(|_| AddError::Ports)?;
                    match kind {
                        ConditionGroup::SourcePorts => set.add_source_ports(port..=port),
                        _ => set.add_ports(port..=port),
                    }
                    Ok(())
                })
            })?,
            "domain" | "domain_suffix" | "domain_keyword" | "domain_regex" | "ip_cidr"
            | "source_ip_cidr" | "port_range" | "source_port_range" | "network" => {
                json.one_or_many(|json| {
                    let (place, text) = (json.place(), json.string()?);
                    rule.add(kind_of(key), place, &text, tally, |set| {
                        add_text(set, key, &text)
                    })
                })?;
            }
            other => {
                rule.refuse(other);
                json.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(rule)
}

/// Returns the group of a key.
fn kind_of(key: &str) -> ConditionGroup {
    match key {
        "port" | "port_range" => ConditionGroup::Ports,
        "source_ip_cidr" => ConditionGroup::Source,
        "source_port" | "source_port_range" => ConditionGroup::SourcePorts,
        "network" => ConditionGroup::Transports,
        _ => ConditionGroup::Destination,
    }
}

/// Adds a condition whose value is a text.
fn add_text(set: &mut RuleSetBuilder, key: &str, text: &str) -> Result<(), AddError> {
    let network = || parse_network(text).ok_or(AddError::Network);
    match key {
        "domain" => set.add_exact(text),
        "domain_suffix" => match text.strip_prefix('.') {
            Some(name) => set.add_below(name),
            None => set.add_domain(text),
        },
        "domain_keyword" => set.add_keyword(text),
        "domain_regex" => set.add_pattern(text),
        "ip_cidr" => network().map(|net| set.add_network(&net)),
        "source_ip_cidr" => network().map(|net| set.add_source(&net)),
        "port_range" => add_range(set, false, text),
        "source_port_range" => add_range(set, true, text),
        _ => match Transport::parse(text) {
            Some(transport) => {
                set.add_transport(transport);
                Ok(())
            }
            None => Err(AddError::Transport),
        },
    }
}

/// Adds `from:to`, of which one end may be missing.
pub(super) fn add_range(to: &mut RuleSetBuilder, source: bool, text: &str) -> Result<(), AddError> {
    let (from, until) = text.split_once(':').ok_or(AddError::Ports)?;
    let from = if from.is_empty() { "0" } else { from };
    let until = if until.is_empty() { "65535" } else { until };
    let ports = parse_ports(&format!("{from}:{until}"), ':')?;
    if source {
        to.add_source_ports(ports);
    } else {
        to.add_ports(ports);
    }
    Ok(())
}
