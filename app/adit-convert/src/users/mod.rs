//! Users of other programs and panels: names, secrets and limits, as adit has them.
//!
//! ```text
//! JSON → tree → one reader per program ─┐
//! CSV, links ───────────────────────────┴→ UserCollector → UserExport: users, skipped users, notes
//! ```
//!
//! A user is never imported with more rights than before: one whose expiry or quota cannot be read is skipped, with the
//! reason; what has no equivalent and takes nothing from the operator's control is a [`Note`](crate::notes::Note).

mod collector;
mod csv;
mod links;
mod marzban;
mod outline;
mod sip008;
mod three_x_ui;
mod upsk;
mod user_export;

use adit_config::text::{Problem, SystemSources};

use crate::conversion_context::{ConversionContext, ConvertOptions};
use crate::json::{self, Json};
use collector::UserCollector;

pub use user_export::{
    ExportedLimits, ExportedUser, MAX_EXPORT_USERS, SkippedUser, UnknownUserFormat, UserExport,
    UserFormat,
};

/// Bytes of an export at most.
pub const MAX_EXPORT_LEN: usize = 64 << 20;
/// Reads the users of an export. Without a format, it is recognised by the content.
///
/// `name` is shown in messages.
///
/// # Errors
///
/// The text is not an export of this format, or exceeds [`MAX_EXPORT_LEN`] or [`MAX_EXPORT_USERS`].
pub fn read_user_export(
    text: &str,
    name: &str,
    format: Option<UserFormat>,
) -> Result<UserExport, Box<Problem>> {
    if text.len() > MAX_EXPORT_LEN {
        let title = format!("`{name}` has more than {MAX_EXPORT_LEN} bytes");
        let help = "export the users in several parts";
        return Err(Box::new(Problem::without_place(title, help)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ConvertOptions::default();
    let clerk = ConversionContext::new(&options, &SystemSources, "");
    let mut found = UserCollector::new(clerk);
    let is_json = text.trim_start().starts_with(['{', '[']);
    let format = match format {
        Some(format @ (UserFormat::Csv | UserFormat::Links)) => format,
        None if links::is_list(text) => UserFormat::Links,
        None if !is_json => UserFormat::Csv,
        wanted => {
            let tree = json::parse_strict(text, name)?;
            let Some(format) = wanted.or_else(|| recognise(&tree)) else {
                return Err(unknown_export(name));
            };
            read_tree(&tree, format, &mut found)?;
            format
        }
    };
    match format {
        UserFormat::Csv => csv::read(text, name, &mut found)?,
        UserFormat::Links => links::read(text, &mut found),
        _ => {}
    }
    found.finish(format)
}

fn unknown_export(name: &str) -> Box<Problem> {
    let names: Vec<&str> = UserFormat::names().collect();
    Box::new(Problem::without_place(
        format!("`{name}` is not an export of users that adit knows"),
        format!("the formats are {}", names.join(", ")),
    ))
}

fn read_tree(
    tree: &Json,
    format: UserFormat,
    found: &mut UserCollector<'_>,
) -> Result<(), Box<Problem>> {
    let has_read = match format {
        UserFormat::Outline => outline::read(tree, found),
        UserFormat::Marzban => marzban::read(tree, found),
        UserFormat::ThreeXUi => three_x_ui::read(tree, found),
        UserFormat::Upsk => upsk::read(tree, found),
        UserFormat::Sip008 => sip008::read(tree, found),
        UserFormat::Csv | UserFormat::Links => Some(()),
    };
    match has_read {
        Some(()) => Ok(()),
        None => Err(Box::new(Problem::without_place(
            format!("the text is not an export in the format `{format}`"),
            "without a format, adit finds it out",
        ))),
    }
}

/// Finds the format of a tree.
fn recognise(tree: &Json) -> Option<UserFormat> {
    let entries = match tree {
        Json::Object(entries) => entries,
        Json::List(items) => return recognise_item(items.first()?),
        _ => return None,
    };
    let field = |name: &str| {
        let found = entries.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    };
    let first_of = |name: &str| match field(name) {
        Some(Json::List(items)) => items.first().and_then(recognise_item),
        _ => None,
    };
    if matches!(field("accessKeys"), Some(Json::List(_))) {
        Some(UserFormat::Outline)
    } else if matches!(field("servers"), Some(Json::List(_))) {
        Some(UserFormat::Sip008)
    } else if field("obj").is_some() {
        Some(UserFormat::ThreeXUi)
    } else if matches!(field("users"), Some(Json::List(_))) {
        first_of("users").or(Some(UserFormat::Marzban))
    } else {
        // An inbound can have texts alone, too.
        let map = upsk::is_map(entries).then_some(UserFormat::Upsk);
        recognise_item(tree).or(map)
    }
}

/// Finds the format of one item of a list.
fn recognise_item(item: &Json) -> Option<UserFormat> {
    let Json::Object(entries) = item else {
        return None;
    };
    let has = |name: &str| entries.iter().any(|(key, _)| key == name);
    if has("uPSK") {
        Some(UserFormat::Upsk)
    } else if has("username") && has("proxies") {
        Some(UserFormat::Marzban)
    } else if has("protocol") && has("settings") {
        Some(UserFormat::ThreeXUi)
    } else if has("server") && has("server_port") {
        Some(UserFormat::Sip008)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised() {
        for (text, format) in [
            (r#"{"accessKeys":[]}"#, UserFormat::Outline),
            (r#"{"users":[],"total":0}"#, UserFormat::Marzban),
            (
                r#"{"users":[{"username":"a","uPSK":""}]}"#,
                UserFormat::Upsk,
            ),
            (r#"[{"username":"a","proxies":{}}]"#, UserFormat::Marzban),
            (
                r#"{"success":true,"msg":"","obj":[]}"#,
                UserFormat::ThreeXUi,
            ),
            (
                r#"{"protocol":"shadowsocks","settings":"{}"}"#,
                UserFormat::ThreeXUi,
            ),
            (r#"{"a":"AAAA"}"#, UserFormat::Upsk),
            (r#"{"version":1,"servers":[]}"#, UserFormat::Sip008),
            ("\u{feff}name,password\n", UserFormat::Csv),
            ("", UserFormat::Csv),
            ("\u{feff}# a\n\nss://\n", UserFormat::Links),
        ] {
            let found = read_user_export(text, "a", None).unwrap();
            assert_eq!(found.format, format, "{text}");
            assert_eq!(found.users, [], "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, format, says) in [
            ("{}", None, "not an export of users that adit knows"),
            ("[1]", None, "not an export"),
            ("{", None, "a"),
            ("[]", Some(UserFormat::Outline), "in the format `outline`"),
            (
                r#"{"servers":1}"#,
                Some(UserFormat::Sip008),
                "`servers` is not a list",
            ),
            (r#"{"a":1}"#, Some(UserFormat::Upsk), "in the format `upsk`"),
        ] {
            let why = read_user_export(text, "a", format).unwrap_err();
            assert!(why.title.contains(says), "{text}: {}", why.title);
        }
    }
}
