//! Configurations of other programs: read, and written as adit's own.
//!
//! ```text
//! text → Json → fields → Shape (routes of URLs) → TOML      and beside it: Notes
//! ```
//!
//! Start with [`convert`]. What has no equivalent becomes a [`Note`] with the path of the field;
//! only what would change who may use a proxy, or which way the traffic takes, is a [`Problem`].
//! [`plan_from_file`] runs such a file as it is; [`sip008`] reads and writes subscriptions.
//!
//! Nothing here fetches anything: the addresses of subscriptions are told to the caller.

#![forbid(unsafe_code)]

mod acl;
mod auth;
mod clerk;
mod fields;
mod go;
mod json;
mod left_out;
mod links;
mod local;
mod note;
mod place;
mod server;
mod shadowsocks_json;
mod shape;
pub mod sip008;
mod ssr;
mod typed;
mod ways;

use core::fmt;
use std::path::Path;

use adit_config::text::{Machine, Problem, Sources, read_file};
use adit_config::{MAX_FILE_LEN, Plan};
use adit_wire::u64_from;
use zeroize::Zeroizing;

pub use adit_wire::Role;
pub use clerk::{AllowedPlugins, Format, MAX_SERVERS, Wish};
pub use note::Note;
pub use typed::{DEFAULT_METHOD, ManagerFile, Program, Typed, manager_file, plan_of_typed};

use clerk::{Clerk, READS};
use json::Json;
use shape::Shape;

/// The same configuration as adit writes it.
pub struct Converted {
    /// A configuration file. It holds secrets.
    pub toml: Zeroizing<String>,
    /// What could not be carried over, and what was guessed.
    pub notes: Vec<Note>,
    /// What the text was.
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
    wish: &Wish,
    sources: &dyn Sources,
) -> Result<Converted, Vec<Problem>> {
    if u64_from(text.len()) > MAX_FILE_LEN {
        let title = format!("`{name}` has more than {MAX_FILE_LEN} bytes");
        let help = "a configuration is never that long: is it the right file?";
        return Err(vec![Problem::without_place(title, help)]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut clerk = Clerk::new(wish, sources, name);
    let (format, shape) = if is_json(text, name) {
        let tree = json::lenient(text, name).map_err(|problem| vec![*problem])?;
        read(&tree, &mut clerk)
    } else {
        links::read(text, &mut clerk)
    };
    file(name, format, &shape, clerk)
}

/// The file that comes of a shape, unless there were problems.
fn file(
    name: &str,
    format: Format,
    shape: &Shape,
    mut clerk: Clerk<'_>,
) -> Result<Converted, Vec<Problem>> {
    if clerk.problems.is_empty() && shape.routes.is_empty() {
        clerk.problem(Problem::without_place(
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

/// The plan of a file: of adit's own TOML, or of another program's JSON, converted on the way.
/// Notes are what could not be carried over.
pub fn plan_from_file(path: &Path, wish: &Wish) -> Result<(Plan, Vec<Note>), Vec<Problem>> {
    let name = path.display().to_string();
    let Ok(file) = read_file(path, MAX_FILE_LEN) else {
        // Says what is wrong with the file.
        return Ok((Plan::from_file(path)?, Vec::new()));
    };
    if !is_json(&file.text, &name) {
        let plan = if file.readable_by_others {
            Plan::from_file(path)?
        } else {
            // A pipe can be read once.
            Plan::from_toml(&file.text, &name)?
        };
        return Ok((plan, Vec::new()));
    }
    let converted = convert(&file.text, &name, wish, &Machine)?;
    let mut plan = Plan::from_toml(&converted.toml, &format!("{name} (converted)"))?;
    if file.readable_by_others {
        plan.warnings.push(typed::readable(&name));
    }
    Ok((plan, converted.notes))
}

/// Finds the format of a tree and reads it.
fn read(tree: &Json, clerk: &mut Clerk<'_>) -> (Format, Shape) {
    match tree {
        Json::List(items) if items.iter().any(|item| item.text().is_some()) => {
            links::list(items, clerk)
        }
        // Before SIP008 had an envelope it was the list alone.
        Json::List(items) => (Format::Sip008, sip008::shape(items, clerk)),
        Json::Object(entries) => {
            let has = |name: &str| entries.iter().any(|(key, _)| key == name);
            if go::is_it(entries) {
                (Format::Go, go::read(tree, clerk))
            } else if has("servers") && has("version") && !has("locals") && !has("local_port") {
                (Format::Sip008, sip008::document(tree, clerk))
            } else {
                shadowsocks_json::read(tree, clerk)
            }
        }
        other => {
            clerk.problem(Problem::without_place(
                format!("the text is {}, not a configuration", other.kind()),
                READS,
            ));
            (Format::Libev, Shape::default())
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
