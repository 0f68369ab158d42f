//! Rule providers of mihomo and Clash.

use super::clash_rule::add_rule;
use super::limits::{Limits, Loaded, Place, ReadError};
use super::tally::Tally;
use super::text::{lines, note_encoding};
use super::yaml;
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::network_table::parse_network;

/// The kind of a rule provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClashBehavior {
    /// Names: `name`, `+.name` (with those below), `.name` (those below) and `*` for a label.
    Domain,
    /// Networks.
    IpCidr,
    /// Rules without their policy: `DOMAIN-SUFFIX,name`.
    Classical,
}

/// Reads a rule provider, as YAML if a line opens a `payload:`, otherwise as text with an entry on each
/// line. The option `no-resolve` is ignored: rules decide whether names are looked up, not their lists.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit.
pub fn read_clash(
    document: &[u8],
    behavior: ClashBehavior,
    limits: &Limits,
) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut set = RuleSetBuilder::new();
    let is_yaml = lines(document).any(|(_, line)| line.is_some_and(yaml::opens_payload));
    let mut inside = !is_yaml;
    for (place, line) in lines(document) {
        let Some(line) = line else {
            tally.see()?;
            note_encoding(&mut tally, place);
            continue;
        };
        let text = line.trim_start();
        let comment = text.starts_with('#') || (!is_yaml && text.starts_with("//"));
        if text.is_empty() || comment {
            continue;
        }
        if !is_yaml {
            add(text, behavior, place, &mut set, &mut tally)?;
        } else if yaml::opens_payload(line) {
            inside = true;
            for item in yaml::flow_items(line) {
                add(&item, behavior, place, &mut set, &mut tally)?;
            }
        } else if line.starts_with(|c: char| c.is_alphanumeric()) || text == "---" {
            // Another key of the document.
            inside = false;
        } else if inside {
            match yaml::item(line, place, &mut tally) {
                Some(item) => add(&item, behavior, place, &mut set, &mut tally)?,
                None => tally.see()?,
            }
        }
    }
    Ok(tally.finish(set))
}

fn add(
    text: &str,
    behavior: ClashBehavior,
    place: Place,
    set: &mut RuleSetBuilder,
    tally: &mut Tally<'_>,
) -> Result<(), ReadError> {
    match behavior {
        ClashBehavior::Domain => tally.count(place, text, add_domain(text, set)),
        ClashBehavior::IpCidr => {
            let text = text.split_once(',').map_or(text, |(net, _)| net).trim();
            let added = parse_network(text).ok_or(AddError::Network);
            tally.count(place, text, added.map(|net| set.add_network(&net)))
        }
        ClashBehavior::Classical => add_rule(text, place, set, tally),
    }
}

/// Adds a name with the wildcards of Clash.
fn add_domain(text: &str, set: &mut RuleSetBuilder) -> Result<(), AddError> {
    if let Some(name) = text.strip_prefix("+.").filter(|name| !name.contains('*')) {
        return set.add_domain(name);
    }
    if let Some(name) = text.strip_prefix('.').filter(|name| !name.contains('*')) {
        return set.add_below(name);
    }
    if !text.contains('*') {
        return set.add_exact(text);
    }
    // A wildcard is a whole label.
    let labels = text.strip_prefix("+.").or_else(|| text.strip_prefix('.'));
    let whole = |label: &str| label == "*" || (!label.is_empty() && !label.contains('*'));
    if !labels.unwrap_or(text).split('.').all(whole) {
        return Err(AddError::Glob);
    }
    match (text.strip_prefix("+."), text.strip_prefix('.')) {
        (Some(name), _) => {
            set.add_glob(name)?;
            set.add_glob(&format!("**.{name}"))
        }
        (None, Some(name)) => set.add_glob(&format!("**.{name}")),
        (None, None) => set.add_glob(text),
    }
}
