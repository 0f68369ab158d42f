//! Outbounds and groups of programs that route traffic: servers, and names for lists of them.
//!
//! ```text
//! clash, sing_box, xray → OutboundList → chains of hops → groups of chains → RouteSet
//! ```
//!
//! The readers of the formats fill an [`OutboundList`]; names are resolved when it is complete. An outbound that adit
//! does not implement is counted and named, and does not affect the others.

mod chains;
mod group_members;
mod routes;
mod servers;

use std::collections::HashMap;

use adit_config::GroupKind;
use adit_config::text::Problem;
use adit_wire::Target;
use zeroize::Zeroizing;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::server_entry;
use crate::toml_output::UrlBuilder;

pub(super) use servers::{
    ServerPlace, host_key_pins, http_hop, shadowsocks_hop, socks_hop, ssh_hop, ssr_hop,
};

/// Maximum number of groups in a document.
const MAX_GROUPS: usize = 512;
/// Names in a note.
const MAX_NAMES: usize = 10;
/// The hop without a server.
const DIRECT: &str = "direct://";

/// The reason why an outbound cannot be used. It contains no secret.
pub(super) enum Unusable {
    /// adit does not implement the type.
    Type(String),
    /// The outbound lacks something, or has a setting that adit does not implement.
    Reason(String),
}

impl From<String> for Unusable {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl From<&str> for Unusable {
    fn from(reason: &str) -> Self {
        Self::Reason(reason.to_owned())
    }
}

/// A hop that an outbound describes.
pub(super) enum OutboundHop {
    Server(UrlBuilder),
    /// The target itself.
    Direct,
}

/// A hop with the name of the outbound before it; `None` for an outbound that is not a server.
pub(super) type ReadOutbound = Result<Option<(OutboundHop, Option<String>)>, Unusable>;

/// An outbound that can be used.
struct Outbound {
    name: String,
    url: Zeroizing<String>,
    is_direct: bool,
    /// The name of the outbound before it.
    before: Option<String>,
}

/// A group as the document describes it.
pub(super) struct OutboundGroup {
    pub(super) name: String,
    pub(super) kind: GroupKind,
    /// Names of outbounds and groups.
    pub(super) members: Vec<String>,
    /// The member of a manual group that is selected, if it is not the first.
    pub(super) selected: Option<String>,
    pub(super) check: Option<Target>,
    /// True if the members are hops of one chain.
    pub(super) is_chain: bool,
}

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Outbound(usize),
    Group(usize),
    /// Something that is not available, for which there is a note.
    Skipped,
}

/// All outbounds and groups of a document.
#[derive(Default)]
pub(super) struct OutboundList {
    outbounds: Vec<Outbound>,
    groups: Vec<OutboundGroup>,
    names: HashMap<String, Named>,
    /// Types and names of outbounds that adit does not implement.
    unsupported: Vec<(String, String)>,
    /// Paths of other outbounds that cannot be used, with the reasons.
    faults: Vec<(String, Problem)>,
}

impl OutboundList {
    /// Reads a list of outbounds. `read` returns the hop of one, and the name of the outbound before it; nothing for
    /// one that is not a server.
    pub(super) fn read_outbounds<'j>(
        &mut self,
        items: &'j [Json],
        list: &str,
        name_key: &str,
        clerk: &mut ConversionContext<'_>,
        read: impl FnMut(&mut ObjectFields<'j>, &str, &mut ConversionContext<'_>) -> ReadOutbound,
    ) {
        self.read_named_outbounds(items, list, None, name_key, clerk, read);
    }

    /// Does the same with outbounds that all have another name than the one that they contain.
    pub(super) fn read_named_outbounds<'j>(
        &mut self,
        items: &'j [Json],
        list: &str,
        given_name: Option<&str>,
        name_key: &str,
        clerk: &mut ConversionContext<'_>,
        mut read: impl FnMut(&mut ObjectFields<'j>, &str, &mut ConversionContext<'_>) -> ReadOutbound,
    ) {
        for (i, item) in items.iter().enumerate() {
            let count = self.outbounds.len() + self.unsupported.len() + self.faults.len();
            if !server_entry::allows_another(count, clerk) {
                return;
            }
            let path = server_entry::item_path(list, i);
            let before = clerk.problems.len();
            let mut name = path.clone();
            let found = ObjectFields::of_object(item, path.clone(), clerk).map(|mut fields| {
                let written = fields.string_field(name_key, clerk);
                if let Some(written) = given_name.or(written) {
                    written.clone_into(&mut name);
                }
                read(&mut fields, &name, clerk)
            });
            // A wrong type in one outbound does not affect the others.
            let mut problems = clerk.problems.split_off(before).into_iter();
            let found = match (problems.next(), found) {
                (Some(problem), _) => {
                    self.faults.push((path.clone(), problem));
                    Err(None)
                }
                (None, Some(found)) => found.map_err(Some),
                (None, None) => Err(None),
            };
            match found {
                Ok(Some((hop, before))) => self.add_outbound(name, hop, before, clerk),
                Ok(None) => {}
                Err(why) => {
                    match why {
                        Some(Unusable::Type(kind)) => self.unsupported.push((kind, name.clone())),
                        Some(Unusable::Reason(why)) => self.add_fault(path, &name, &why),
                        None => {}
                    }
                    self.names.entry(name).or_insert(Named::Skipped);
                }
            }
        }
    }

    fn add_outbound(
        &mut self,
        name: String,
        hop: OutboundHop,
        before: Option<String>,
        clerk: &mut ConversionContext<'_>,
    ) {
        let (url, is_direct) = match hop {
            OutboundHop::Server(url) => (url.with_name(Some(&name)).to_text(), false),
            OutboundHop::Direct => (Zeroizing::new(DIRECT.to_owned()), true),
        };
        if self.names.contains_key(&name) {
            clerk.add_note(
                "",
                format!("`{name}` is defined twice; the first one is used"),
            );
            return;
        }
        self.names
            .insert(name.clone(), Named::Outbound(self.outbounds.len()));
        self.outbounds.push(Outbound {
            name,
            url,
            is_direct,
            before,
        });
    }

    fn add_fault(&mut self, path: String, name: &str, why: &str) {
        let title = if name == path {
            format!("`{path}`: {why}")
        } else {
            format!("`{path}` (`{name}`): {why}")
        };
        let help = if why.contains("was not allowed") {
            "`--allow-plugin NAME` allows it, if you trust where the document comes from"
        } else {
            "`adit help` lists the protocols that adit implements"
        };
        self.faults
            .push((path, Problem::without_place(title, help)));
    }

    /// Adds a name that every document has, unless it defines it.
    pub(super) fn add_direct(&mut self, name: &str) {
        if !self.names.contains_key(name) {
            self.names
                .insert(name.to_owned(), Named::Outbound(self.outbounds.len()));
            self.outbounds.push(Outbound {
                name: name.to_owned(),
                url: Zeroizing::new(DIRECT.to_owned()),
                is_direct: true,
                before: None,
            });
        }
    }

    /// Adds the name of a member that refuses requests, which no group of adit has.
    pub(super) fn add_skipped(&mut self, name: &str) {
        self.names.entry(name.to_owned()).or_insert(Named::Skipped);
    }

    /// Adds a group.
    pub(super) fn add_group(&mut self, group: OutboundGroup, clerk: &mut ConversionContext<'_>) {
        if self.groups.len() == MAX_GROUPS {
            let title = format!("more than {MAX_GROUPS} groups");
            clerk.add_problem(Problem::without_place(title, "remove some of them"));
            return;
        }
        if self.names.contains_key(&group.name) {
            let text = format!("`{}` is defined twice; the first one is used", group.name);
            clerk.add_note("", text);
            return;
        }
        self.names
            .insert(group.name.clone(), Named::Group(self.groups.len()));
        self.groups.push(group);
    }

    /// The names of all servers that can be used, in the order of the document.
    pub(super) fn server_names(&self) -> impl Iterator<Item = &str> {
        let servers = self.outbounds.iter().filter(|one| !one.is_direct);
        servers.map(|one| one.name.as_str())
    }

    /// Notes the outbounds that cannot be used. With no other, they are problems.
    fn report_unusable(&mut self, clerk: &mut ConversionContext<'_>) {
        let has_servers = self.server_names().next().is_some();
        let summary = self.unsupported_summary();
        if !has_servers {
            for (_, problem) in self.faults.drain(..) {
                clerk.add_problem(problem);
            }
            if let Some(summary) = summary {
                let help = "adit implements Shadowsocks, ShadowsocksR, SOCKS, HTTP and SSH";
                clerk.add_problem(Problem::without_place(summary, help));
            } else if clerk.problems.is_empty() {
                let help =
                    "a document lists servers in `proxies` (Clash) or `outbounds` (sing-box, Xray)";
                clerk.add_problem(Problem::without_place("the document has no servers", help));
            }
            return;
        }
        if let Some(summary) = summary {
            clerk.add_note("", summary);
        }
        for (path, problem) in self.faults.drain(..) {
            clerk.add_note(path, format!("skipped: {}", problem.title));
        }
    }

    /// The number, types and names of the outbounds that adit does not implement.
    fn unsupported_summary(&self) -> Option<String> {
        let (first, _) = self.unsupported.first()?;
        let names = list_names(self.unsupported.iter().map(|(_, name)| name.as_str()));
        let number = self.unsupported.len();
        if number == 1 {
            return Some(format!(
                "1 outbound of type {first} is not supported: {names}"
            ));
        }
        let mut types: Vec<(&str, usize)> = Vec::new();
        for (kind, _) in &self.unsupported {
            match types.iter_mut().find(|(known, _)| known == kind) {
                Some((_, count)) => *count += 1,
                None => types.push((kind, 1)),
            }
        }
        types.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let shown: Vec<String> = types
            .iter()
            .take(MAX_NAMES)
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        let more = match types.len().saturating_sub(MAX_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "{number} outbounds of types {}{more} are not supported: {names}",
            shown.join(", ")
        ))
    }
}

/// Names in a sentence: the first of them, and the number of the others.
pub(super) fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut shown = String::new();
    let mut more = 0_usize;
    for (i, name) in names.enumerate() {
        if i >= MAX_NAMES {
            more += 1;
            continue;
        }
        if i > 0 {
            shown.push_str(", ");
        }
        shown.push('`');
        // A name is shown to recognise it.
        shown.extend(name.chars().take(64));
        shown.push('`');
    }
    if more > 0 {
        shown.push_str(&format!(" and {more} more"));
    }
    shown
}

/// The target of probes, from the URL that a group requests.
pub(super) fn probe_target(url: &str) -> Option<Target> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.contains('@') {
        return None;
    }
    let port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let with_port = authority.parse::<Target>();
    let target = with_port.or_else(|_| format!("{authority}:{port}").parse::<Target>());
    target.ok().filter(|target| target.port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_probes_are_read() {
        let read = |url| probe_target(url).map(|target| target.to_string());
        for (url, target) in [
            ("http://a.example/generate_204", "a.example:80"),
            ("https://a.example", "a.example:443"),
            ("https://a.example:8443/x?y", "a.example:8443"),
            ("http://192.0.2.1:81/", "192.0.2.1:81"),
            ("http://[2001:db8::1]/", "[2001:db8::1]:80"),
        ] {
            assert_eq!(read(url).as_deref(), Some(target), "{url}");
        }
        for url in [
            "",
            "a.example",
            "ftp://a.example/",
            "http://u@a.example/",
            "http:///x",
            "http://a:0/",
        ] {
            assert_eq!(read(url), None, "{url}");
        }
    }

    #[test]
    fn long_lists_of_names_are_shortened() {
        let names: Vec<String> = (0..13).map(|i| i.to_string()).collect();
        let shown = list_names(names.iter().map(String::as_str));
        assert!(
            shown.starts_with("`0`, `1`, ") && shown.ends_with("`9` and 3 more"),
            "{shown}"
        );
        assert_eq!(list_names(["x"].into_iter()), "`x`");
    }
}
