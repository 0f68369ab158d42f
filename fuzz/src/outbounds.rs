//! Documents of outbounds and groups: the properties of everything that a conversion returns.

use adit_config::{Plan, explain_plan};
use adit_convert::{AllowedPlugins, ConvertOptions, Role, convert};

use crate::{MinimalSources, split_flags};

/// Converts a document, and checks the result. The flags of the input select the options; with the first of them the
/// input is the inside of `frame`, a well-formed document.
pub fn check(input: &[u8], name: &str, frame: (&str, &str)) {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let text = match flags & 1 {
        0 => text.to_owned(),
        _ => format!("{}{text}{}", frame.0, frame.1),
    };
    let options = ConvertOptions {
        role: Some(Role::Client),
        plugins: match flags & 2 {
            0 => AllowedPlugins::none(),
            _ => AllowedPlugins::only(vec!["obfs-local".to_owned(), "v2ray-plugin".to_owned()]),
        },
        select: (flags & 4 != 0).then(|| "a".to_owned()),
    };
    let first = convert(&text, name, &options, &MinimalSources);
    let again = convert(&text, name, &options, &MinimalSources);
    match (first, again) {
        (Ok(found), Ok(again)) => {
            assert!(found.toml == again.toml && found.notes == again.notes);
            assert!(found.notes.len() <= 201);
            for note in &found.notes {
                assert!(!note.to_string().contains(char::is_control), "{note:?}");
            }
            match Plan::from_toml_with(&found.toml, "converted.toml", &MinimalSources) {
                Ok(plan) => drop(explain_plan(&plan)),
                // It may be refused for its content, not for its syntax.
                Err(_) => drop(toml::de::DeTable::parse(&found.toml).expect("TOML")),
            }
        }
        (Err(first), Err(again)) => {
            assert!(first == again && !first.is_empty() && first.len() <= 200);
        }
        (first, again) => panic!("{first:?} and {again:?}"),
    }
}
