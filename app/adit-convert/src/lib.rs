//! Configurations of other programs: read, and written as adit's own.
//!
//! ```text
//! JSON, YAML → tree → fields → routes and groups of URLs → TOML      and beside it: Notes
//! ```
//!
//! Start with [`convert`]. What has no equivalent becomes a [`Note`] with the path of the field;
//! only what would change who may use a proxy, or which way the traffic takes, is a [`Problem`].
//! [`plan_from_file`] runs such a file as it is; [`sip008`] reads and writes subscriptions; [`users`] reads exports of
//! users.
//!
//! Nothing here fetches anything: the addresses of subscriptions are returned to the caller.

#![forbid(unsafe_code)]

mod acl_rules;
mod clash;
mod command_line;
mod conversion_context;
mod document_place;
mod fields;
mod json;
mod json_error;
mod links;
mod local_listeners;
mod notes;
mod omitted_fields;
mod outbounds;
mod proxy_users;
mod routes;
mod server_entry;
mod shadowsocks_go;
mod shadowsocks_json;
mod shared_document;
mod sing_box;
pub mod sip008;
mod ssr;
mod toml_output;
pub mod users;
mod xray;
mod yaml;

use core::fmt;
use std::path::Path;

use adit_config::text::{Problem, Sources, SystemSources, read_file};
use adit_config::{MAX_FILE_LEN, Plan};
use adit_wire::u64_from;
use zeroize::Zeroizing;

pub use adit_wire::Role;
pub use command_line::{
    CommandLineFields, CommandLineProgram, DEFAULT_METHOD, ManagerFile, plan_from_command_line,
    read_manager_file,
};
pub use conversion_context::{AllowedPlugins, ConvertOptions, Format, MAX_SERVERS};
pub use notes::Note;
pub use shared_document::{DocumentFormat, QuotaUsage, write_document};

use conversion_context::{ConversionContext, SUPPORTED_FORMATS};
use document_place::{Syntax, add_places};
use json::Json;
use toml_output::RouteSet;

/// The same configuration as adit writes it.
pub struct Converted {
    /// A configuration file. It holds secrets.
    pub toml: Zeroizing<String>,
    /// Settings that could not be carried over, and guesses.
    pub notes: Vec<Note>,
    /// The format of the text.
    pub format: Format,
}

impl fmt::Debug for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converted")
            .field("format", &self.format)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// Converts a configuration of another program.
///
/// `name` is shown in messages; relative paths in the text begin at its folder, and are read from
/// `sources`. Texts of more than [`MAX_FILE_LEN`] bytes and more than [`MAX_SERVERS`] servers are
/// refused.
pub fn convert(
    text: &str,
    name: &str,
    wish: &ConvertOptions,
    sources: &dyn Sources,
) -> Result<Converted, Vec<Problem>> {
    if u64_from(text.len()) > MAX_FILE_LEN {
        let title = format!("`{name}` has more than {MAX_FILE_LEN} bytes");
        let help = "a configuration is never that long: is it the right file?";
        return Err(vec![Problem::without_place(title, help)]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut clerk = ConversionContext::new(wish, sources, name);
    let (format, shape) = if is_json(text, name) {
        let tree = json::parse_json5(text, name).map_err(|problem| vec![*problem])?;
        let read = read_json(&tree, &mut clerk);
        add_places(&mut clerk.problems, text, name, Syntax::Json);
        read
    } else if is_clash(text, name) {
        let tree = yaml::parse(text, name).map_err(|problem| vec![*problem])?;
        let shape = clash::convert_document(&tree, &mut clerk);
        add_places(&mut clerk.problems, text, name, Syntax::Yaml);
        (Format::Clash, shape)
    } else {
        let read = links::read_text(text, &mut clerk);
        // The lines of base64 are not those of the text.
        if text.contains("://") {
            add_places(&mut clerk.problems, text, name, Syntax::Lines);
        }
        read
    };
    finish_conversion(name, format, &shape, clerk)
}

/// The file that comes of a shape, unless there were problems.
fn finish_conversion(
    name: &str,
    format: Format,
    shape: &RouteSet,
    mut clerk: ConversionContext<'_>,
) -> Result<Converted, Vec<Problem>> {
    if clerk.problems.is_empty() && shape.routes.is_empty() {
        clerk.add_problem(Problem::without_place(
            format!("nothing in `{name}` can be carried over"),
            "the notes say why each part was left out",
        ));
    }
    if !clerk.problems.is_empty() {
        return Err(clerk.problems);
    }
    let toml = shape.to_toml(name, format, &clerk.notes);
    Ok(Converted {
        toml,
        notes: clerk.notes,
        format,
    })
}

/// True if a file of this content and name is not TOML but JSON: by its first character, or by
/// its suffix. A table of TOML begins with `[` too, but holds no `{` and no address there.
#[must_use]
pub fn is_json(text: &str, name: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let suffix = |suffix| {
        Path::new(name)
            .extension()
            .is_some_and(|found| found.eq_ignore_ascii_case(suffix))
    };
    if text.starts_with(['{', '/']) || suffix("json") || suffix("json5") {
        return true;
    }
    let Some(inside) = text.strip_prefix('[') else {
        return false;
    };
    let inside = inside.trim_start();
    let quoted = inside.trim_start_matches(['"', '\'']);
    let link = |scheme: &&str| quoted.starts_with(*scheme);
    inside.starts_with(['{', '/']) || ["ss://", "ssr://", "ssconf://"].iter().any(link)
}

/// True if a file of this content and name is YAML of Clash: by a line that opens the list of its servers or groups,
/// or by its suffix.
#[must_use]
pub fn is_clash(text: &str, name: &str) -> bool {
    let suffix = Path::new(name).extension();
    let is_yaml = suffix.is_some_and(|found| {
        found.eq_ignore_ascii_case("yaml") || found.eq_ignore_ascii_case("yml")
    });
    is_yaml || clash::is_clash(text)
}

/// The plan of a file: of adit's own TOML, or of another program's JSON or YAML, converted on the way.
/// Notes are what could not be carried over.
pub fn plan_from_file(
    path: &Path,
    wish: &ConvertOptions,
) -> Result<(Plan, Vec<Note>), Vec<Problem>> {
    plan_from_file_with(path, wish, &SystemSources)
}

/// Like [`plan_from_file`], with other sources of the files and variables that it refers to.
///
/// # Errors
///
/// All problems of the file.
pub fn plan_from_file_with(
    path: &Path,
    wish: &ConvertOptions,
    sources: &dyn Sources,
) -> Result<(Plan, Vec<Note>), Vec<Problem>> {
    let name = path.display().to_string();
    let Ok(file) = read_file(path, MAX_FILE_LEN) else {
        // Says what is wrong with the file.
        return Ok((Plan::from_file_with(path, sources)?, Vec::new()));
    };
    if !is_json(&file.text, &name) && !is_clash(&file.text, &name) {
        let plan = if file.readable_by_others {
            Plan::from_file_with(path, sources)?
        } else {
            // A pipe can be read once.
            Plan::from_toml_with(&file.text, &name, sources)?
        };
        return Ok((plan, Vec::new()));
    }
    let converted = convert(&file.text, &name, wish, sources)?;
    let converted_name = format!("{name} (converted)");
    let mut plan = Plan::from_toml_with(&converted.toml, &converted_name, sources)?;
    if file.readable_by_others {
        plan.warnings
            .push(command_line::readable_secret_warning(&name));
    }
    Ok((plan, converted.notes))
}

/// Finds the format of a tree and reads it.
fn read_json(tree: &Json, clerk: &mut ConversionContext<'_>) -> (Format, RouteSet) {
    match tree {
        Json::List(items) if items.iter().any(|item| item.as_str().is_some()) => {
            links::read_list(items, clerk)
        }
        Json::List(items) if xray::is_list(items) => {
            (Format::Xray, xray::convert_list(items, clerk))
        }
        // Before SIP008 had an envelope it was the list alone.
        Json::List(items) => (Format::Sip008, sip008::convert_list(items, clerk)),
        Json::Object(entries) => {
            let has = |name: &str| entries.iter().any(|(key, _)| key == name);
            if sing_box::is_sing_box(entries) {
                (Format::SingBox, sing_box::convert_document(tree, clerk))
            } else if xray::is_xray(entries) {
                (Format::Xray, xray::convert_document(tree, clerk))
            } else if has("proxies") || has("proxy-groups") {
                (Format::Clash, clash::convert_document(tree, clerk))
            } else if shadowsocks_go::is_shadowsocks_go(entries) {
                (Format::Go, shadowsocks_go::convert_document(tree, clerk))
            } else if has("servers") && has("version") && !has("locals") && !has("local_port") {
                (Format::Sip008, sip008::convert_document(tree, clerk))
            } else {
                shadowsocks_json::convert_document(tree, clerk)
            }
        }
        other => {
            clerk.add_problem(Problem::without_place(
                format!("the text is {}, not a configuration", other.kind_name()),
                SUPPORTED_FORMATS,
            ));
            (Format::Libev, RouteSet::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_toml() {
        for (text, name, json) in [
            ("{}", "a", true),
            (" \n{ // x\n}", "a.conf", true),
            ("\u{feff}{", "a", true),
            ("// x\n{}", "a", true),
            ("[ {\"server\": 1}]", "a", true),
            ("[\"ss://a\"]", "a", true),
            ("", "a.JSON", true),
            ("[route.home]", "adit.toml", false),
            ("[[route]]", "a", false),
            ("[ \"route\".home ]", "a", false),
            ("# {}\n[route.a]", "a", false),
            ("ss://a@b:1", "a.txt", false),
            ("", "", false),
        ] {
            assert_eq!(is_json(text, name), json, "{text} {name}");
        }
    }
}
