//! Parsing of the plugin's options: the side and the obfuscation.

use std::fmt;

use adit_config::RejectPolicy;
use adit_crypto::Secret;
use adit_obfs::{Browser, ObfsKind, ObfsParam, RedirectRule};
use adit_wire::Role;
use tracing::debug;

use super::obfs::ObfsConfig;
use super::{PluginEndpointError, options};

/// All options, for messages.
pub(super) const OPTION_NAMES: [&str; 8] = [
    "`obfs=NAME`",
    "`param=TEXT`",
    "`key=TEXT`",
    "`browser=NAME`",
    "`redirect=RULES`",
    "`reject=POLICY`",
    "`server`",
    "`client`",
];

/// Options of other plugins that are ignored, because they match the default or do not apply.
const IGNORED_OPTIONS: [&str; 8] = [
    "fast-open",
    "mptcp",
    "v",
    "6",
    "t",
    "i",
    "a",
    "TicketTimeHint",
];

/// Parses the options.
pub(super) fn parse_options(text: &str) -> Result<(Option<Role>, ObfsConfig), PluginEndpointError> {
    let (mut side, mut obfs, mut quiet, mut named) = (None, ObfsConfig::default(), false, false);
    for (name, value) in options::parse_options(text)?.iter() {
        let wrong = |why: &dyn fmt::Display| PluginEndpointError::Value {
            name: name.to_owned(),
            why: why.to_string(),
        };
        quiet |= matches!(name, "ServerName" | "Key" | "Browser" | "WebServerAddr");
        match (name, value) {
            ("server", None) => side = Some(Role::Server),
            ("client", None) => side = Some(Role::Client),
            ("server" | "client", Some(_)) => {
                return Err(wrong(&"is a flag and takes no value"));
            }
            ("obfs", Some(value)) => {
                let found =
                    ObfsKind::parse_server_name(value).map_err(|_| PluginEndpointError::Obfs {
                        name: value.to_owned(),
                        known: ObfsConfig::all_names(),
                    })?;
                (obfs.kind, obfs.strangers) = found;
                named = true;
            }
            ("param" | "ServerName", Some(value)) => {
                obfs.param = ObfsParam::parse(value)?;
            }
            ("key" | "Key", Some(value)) => obfs.key = Secret::new(value.to_owned()),
            ("browser" | "Browser", Some("chrome")) => obfs.browser = Browser::Chrome,
            ("browser" | "Browser", Some("firefox")) => obfs.browser = Browser::Firefox,
            ("browser" | "Browser", Some(_)) => return Err(wrong(&"is `chrome` or `firefox`")),
            ("redirect" | "WebServerAddr", Some(value)) => {
                let rules = value.split(',').map(RedirectRule::parse);
                obfs.redirect = rules
                    .collect::<Result<_, _>>()
                    .map_err(|why| wrong(&format!("does not fit: {why}")))?;
            }
            ("reject", Some("drain")) => obfs.reject = RejectPolicy::Drain,
            ("reject", Some("reset")) => obfs.reject = RejectPolicy::Reset,
            ("reject", Some("close")) => obfs.reject = RejectPolicy::Close,
            ("reject", Some(_)) => return Err(wrong(&"is `drain`, `reset` or `close`")),
            (
                "obfs" | "param" | "key" | "browser" | "redirect" | "reject" | "ServerName" | "Key"
                | "Browser" | "WebServerAddr",
                None,
            ) => return Err(wrong(&"needs a value")),
            (idle, _) if IGNORED_OPTIONS.contains(&idle) => debug!("option `{idle}` is ignored"),
            _ => return Err(PluginEndpointError::Unknown(name.to_owned())),
        }
    }
    if quiet && !named {
        obfs.kind = ObfsKind::GoQuiet;
    }
    Ok((side, obfs))
}
