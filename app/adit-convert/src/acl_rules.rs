//! ACL files of shadowsocks-libev, shadowsocks-rust and ShadowsocksR: sections of networks and of
//! regular expressions for names, which become rules.
//!
//! A client asks the lists in this order, as `ss-local` does: what is blocked, names of the bypass
//! and of the proxy list, addresses of the bypass and of the proxy list, then what the file says of
//! everything else. Names that no expression decides are looked up for the networks. A server has
//! one list of places that are not reached; lists of the clients that it serves are refused, since
//! without them it would serve others.

use adit_config::NamePattern;
use adit_config::text::{
    ConfigError, Origin, Problem, SourceLocation, Span, format_network, parse_network,
};
use ipnet::{IpNet, Ipv4Net};
use zeroize::Zeroizing;

use crate::conversion_context::ConversionContext;
use crate::toml_output::{Rule, Stage};

/// Bytes of a file at most. The long ones that people have hold 300 KiB.
const MAX_LEN: u64 = 4 * 1024 * 1024;
/// Expressions that are no names in disguise, at most: each request is compared with all.
const MAX_PATTERNS: usize = 4096;
/// Characters of a line that messages show at most.
const MAX_SHOWN: usize = 120;

/// The decision on requests that a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AclList {
    /// `[outbound_block_list]`
    Block,
    /// `[bypass_list]` of a client; `[black_list]`
    Bypass,
    /// `[proxy_list]` of a client; `[white_list]`
    Proxy,
    /// `[remote_dns]`: how names are looked up.
    Dns,
}

/// The conditions of a list, as rules write them.
#[derive(Debug, Default)]
struct AclConditions {
    names: Vec<String>,
    nets: Vec<String>,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Acl {
    block: AclConditions,
    bypass: AclConditions,
    proxy: AclConditions,
    /// `[bypass_all]`, `[reject_all]`: what no list names does not take the proxy.
    bypass_all: bool,
}

/// Reads the file that a configuration names; nothing if that is a problem.
pub(super) fn read_acl(path: &str, file: &str, clerk: &mut ConversionContext<'_>) -> Option<Acl> {
    let text = clerk.read_long_file(path, file, MAX_LEN)?.text;
    let problems = clerk.problems.len();
    let acl = parse_acl(&text, file, clerk);
    (clerk.problems.len() == problems).then_some(acl)
}

fn parse_acl(text: &str, file: &str, clerk: &mut ConversionContext<'_>) -> Acl {
    let mut acl = Acl::default();
    // Before the first section lines belong to the bypass list, as in shadowsocks-libev.
    let mut list = AclList::Bypass;
    let mut patterns = 0;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('[') && line.ends_with(']') {
            match apply_section(line, &mut acl) {
                Some(named) => list = named.unwrap_or(list),
                None => clerk.add_problem(line_problem(
                    (file, at, line),
                    "not a section of an ACL",
                    "",
                    "the sections are proxy_all, bypass_all, proxy_list, bypass_list, accept_all, \
                     reject_all, black_list, white_list, outbound_block_list and remote_dns",
                )),
            }
            continue;
        }
        let conditions = match list {
            AclList::Block => &mut acl.block,
            AclList::Bypass => &mut acl.bypass,
            AclList::Proxy => &mut acl.proxy,
            // How names are looked up is not the ACL's matter here.
            AclList::Dns => continue,
        };
        if let Some(net) = parse_network_line(line) {
            conditions.nets.push(net);
        } else if let Some(names) = names_of_expression(line) {
            conditions.names.extend(names);
        } else if patterns == MAX_PATTERNS {
            clerk.add_problem(line_problem(
                (file, at, line),
                "too many expressions",
                &format!("the first after {MAX_PATTERNS}"),
                "names that are written as `(^|\\.)example\\.com$` do not count",
            ));
            return acl;
        } else {
            patterns += 1;
            match NamePattern::parse(line) {
                Ok(_) => conditions.names.push(format!("regex:{line}")),
                Err(why) => clerk.add_problem(line_problem(
                    (file, at, line),
                    "not a network, and not an expression for names",
                    &why.to_string(),
                    "expressions are those of the crate `regex-lite`: no look-around, no back-references",
                )),
            }
        }
    }
    acl
}

/// Notes what a section says; the list that begins with it, if one does. `None` is no section.
fn apply_section(line: &str, acl: &mut Acl) -> Option<Option<AclList>> {
    match line {
        "[bypass_all]" | "[reject_all]" => acl.bypass_all = true,
        "[proxy_all]" | "[accept_all]" => acl.bypass_all = false,
        "[outbound_block_list]" => return Some(Some(AclList::Block)),
        "[bypass_list]" | "[black_list]" => return Some(Some(AclList::Bypass)),
        "[proxy_list]" | "[white_list]" => return Some(Some(AclList::Proxy)),
        "[remote_dns]" => return Some(Some(AclList::Dns)),
        _ => return None,
    }
    Some(None)
}

/// A network, as a rule writes it. An IPv4 network in an IPv6 one is that IPv4 network: requests
/// are compared in that form.
fn parse_network_line(line: &str) -> Option<String> {
    if let Some(net) = parse_network(line) {
        return Some(format_network(&net));
    }
    let IpNet::V6(mapped) = line.parse::<IpNet>().ok()? else {
        return None;
    };
    let bits = mapped.prefix_len().checked_sub(96)?;
    let net = Ipv4Net::new(mapped.addr().to_ipv4_mapped()?, bits).ok()?;
    Some(format_network(&IpNet::V4(net.trunc())))
}

/// The names that an expression means, if it means one name, the names below it, or both: rules
/// compare those faster. `|name` and `||name` are what shadowsocks-rust has for it.
fn names_of_expression(line: &str) -> Option<Vec<String>> {
    let plain = |name: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (!name.is_empty() && !name.starts_with('.') && name.chars().all(good))
            .then(|| name.to_ascii_lowercase())
    };
    let unescaped = |text: &str| {
        // A dot that is not escaped is any character.
        let name = text.strip_suffix('$')?.replace("\\-", "-");
        if name.replace("\\.", "").contains('.') {
            return None;
        }
        plain(&name.replace("\\.", "."))
    };
    let both = |name: String| vec![format!("*.{name}"), name];
    if let Some(name) = line.strip_prefix("||") {
        return plain(name).map(both);
    }
    if let Some(name) = line.strip_prefix('|') {
        return plain(name).map(|name| vec![name]);
    }
    let either = ["(^|\\.)", "(?:^|\\.)", "(\\.|^)", "(?:\\.|^)"];
    if let Some(rest) = either.iter().find_map(|head| line.strip_prefix(head)) {
        return unescaped(rest).map(both);
    }
    if let Some(rest) = line.strip_prefix('^') {
        return unescaped(rest).map(|name| vec![name]);
    }
    let rest = line.strip_prefix("\\.")?;
    unescaped(rest).map(|name| vec![format!("*.{name}")])
}

fn line_problem(
    (file, at, line): (&str, usize, &str),
    title: &str,
    label: &str,
    help: &str,
) -> Problem {
    let quoted: String = line.chars().take(MAX_SHOWN).collect();
    let place = SourceLocation {
        origin: Origin::File(file.to_owned()),
        line: at + 1,
        column: 1,
        caret: (0, quoted.chars().count()),
        snippet: quoted,
    };
    let flaw = ConfigError::new(Span::default(), title).with_label(label);
    flaw.with_help(help).into_problem(place)
}

impl AclConditions {
    const fn is_empty(&self) -> bool {
        self.names.is_empty() && self.nets.is_empty()
    }
}

/// A rule for these conditions, if there is one.
fn rule_for(matches: Vec<String>, via: &[Stage], resolve: bool) -> Option<Rule> {
    (!matches.is_empty()).then(|| Rule {
        matches,
        via: via.to_vec(),
        resolve,
    })
}

fn single_hop_chain(url: &str) -> Vec<Stage> {
    vec![vec![Zeroizing::new(url.to_owned())]]
}

impl Acl {
    /// The rules of a client whose servers are `via`, and the way of everything else.
    pub(super) fn client_rules(self, via: &[Stage]) -> (Vec<Rule>, Vec<Stage>) {
        let (direct, reject) = (single_hop_chain("direct://"), single_hop_chain("reject://"));
        let Self {
            block,
            bypass,
            proxy,
            bypass_all,
        } = self;
        let otherwise = if bypass_all { &direct[..] } else { via };
        let rules = [
            // Not looked up for that: each name would be told to the resolver of this place.
            rule_for([block.names, block.nets].concat(), &reject, false),
            rule_for(bypass.names, &direct, false),
            rule_for(proxy.names, via, false),
            rule_for(bypass.nets, &direct, true),
            // Else they go the same way anyhow, and no name has to be looked up for it.
            rule_for(proxy.nets, via, true).filter(|_| bypass_all),
        ];
        let rules = rules.into_iter().flatten().collect();
        (rules, otherwise.to_vec())
    }

    /// The rules of a server.
    pub(super) fn server_rules(self, path: &str, clerk: &mut ConversionContext<'_>) -> Vec<Rule> {
        if self.bypass_all || !self.bypass.is_empty() || !self.proxy.is_empty() {
            clerk.add_problem(Problem::without_place(
                format!(
                    "`{path}`: its lists say which clients are served, which adit does not read"
                ),
                "without them others would be served: let the firewall admit these clients, and \
                 leave `outbound_block_list` alone in the file",
            ));
        }
        let rules = [
            rule_for(self.block.names, &single_hop_chain("reject://"), false),
            rule_for(self.block.nets, &single_hop_chain("reject://"), true),
        ];
        rules.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversion_context::ConvertOptions;
    use adit_config::text::SystemSources;

    fn parsed(text: &str) -> (Acl, Vec<String>) {
        let wish = ConvertOptions::default();
        let mut clerk = ConversionContext::new(&wish, &SystemSources, "a.json");
        let acl = parse_acl(text, "a.acl", &mut clerk);
        (acl, clerk.problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn expressions_for_a_name_are_names() {
        for (line, names) in [
            (r"(^|\.)Example\.com$", "*.example.com example.com"),
            (r"(?:^|\.)a\-b\.c$", "*.a-b.c a-b.c"),
            (r"^a\.b$", "a.b"),
            (r"\.a\.b$", "*.a.b"),
            ("||a.b", "*.a.b a.b"),
            ("|a.b", "a.b"),
        ] {
            assert_eq!(
                names_of_expression(line).unwrap().join(" "),
                names,
                "{line}"
            );
        }
        for line in [
            r"(^|\.)a.b$",
            r"(^|\.)a\.b",
            r"^ads?\.b$",
            "a.b",
            r"\.$",
            "||",
            "|*.a",
        ] {
            assert_eq!(names_of_expression(line), None, "{line}");
        }
    }

    #[test]
    fn sections_are_told_apart() {
        let text = "10.0.0.0/8\n# c\n [bypass_all] \n[proxy_list]\n^ads?\\d*\\.\n1.2.3.4\n\
                    [remote_dns]\n8.8.8.8\n[outbound_block_list]\n::ffff:127.0.0.1/104\nfd00::1/8\n";
        let (acl, problems) = parsed(text);
        assert!(problems.is_empty(), "{problems:?}");
        assert!(acl.bypass_all);
        assert_eq!(acl.bypass.nets, ["10.0.0.0/8"]);
        assert_eq!(acl.proxy.names, [r"regex:^ads?\d*\."]);
        assert_eq!(acl.proxy.nets, ["1.2.3.4"]);
        assert_eq!(acl.block.nets, ["127.0.0.0/8", "fd00::/8"]);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let (_, problems) = parsed("[proxy_all]\n[no_such]\n(?=a)b\n");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("a.acl:2:1") && problems[0].contains("not a section"));
        assert!(problems[1].contains("a.acl:3:1") && problems[1].contains("look-around"));
        let many = "a.b\n".repeat(MAX_PATTERNS + 5);
        let (_, problems) = parsed(&many);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(&format!("a.acl:{}:1", MAX_PATTERNS + 1)));
    }
}
