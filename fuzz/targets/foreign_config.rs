//! Other programs' configuration: any text is converted to a plan, or to problems.

#![no_main]

use std::io;
use std::path::Path;

use adit_config::{FileText, Plan, Problem, Sources, explain_plan};
use adit_convert::{AllowedPlugins, ConvertOptions, Converted, Role, convert};
use adit_fuzz::{MinimalSources, split_flags};
use libfuzzer_sys::fuzz_target;

/// A password that a message must never show.
const PLANTED_PASSWORD: &str = "hunter2";

fn check_problems(problems: &[Problem], text: &str) {
    assert!(!problems.is_empty() && problems.len() <= 200);
    for problem in problems {
        let shown = problem.to_string();
        assert!(!shown.is_empty());
        if let Some(place) = &problem.place {
            // JSON5 has more line terminators than other formats.
            let ends = text.matches(['\n', '\r', '\u{2028}', '\u{2029}']);
            assert!(place.line <= ends.count() + 1, "{shown}");
        }
    }
}

fn check_converted(converted: &Converted) {
    assert!(converted.notes.len() <= 201);
    for note in &converted.notes {
        let shown = note.to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
    // It may be refused for its content, not for its syntax.
    let read = toml::de::DeTable::parse(&converted.toml);
    assert!(read.is_ok(), "{}", &*converted.toml);
    match Plan::from_toml_with(&converted.toml, "converted.toml", &MinimalSources) {
        Ok(plan) => drop(explain_plan(&plan)),
        Err(problems) => check_problems(&problems, &converted.toml),
    }
}

/// A machine on which every file has this text.
struct SameTextEverywhere<'a>(&'a str);

impl Sources for SameTextEverywhere<'_> {
    fn read_file(&self, _: &Path) -> io::Result<FileText> {
        Ok(FileText {
            text: self.0.to_owned().into(),
            readable_by_others: false,
        })
    }

    fn read_variable(&self, _: &str) -> Option<zeroize::Zeroizing<String>> {
        None
    }
}

/// The text as an ACL of a client or a server.
const ACL_CONFIG: &str =
    r#"{"server":"127.0.0.1","server_port":1,"method":"none","password":"p","acl":"a"}"#;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let wish = ConvertOptions {
        role: [None, Some(Role::Client), Some(Role::Server)][usize::from(flags % 3)],
        plugins: match flags & 4 {
            0 => AllowedPlugins::none(),
            _ => AllowedPlugins::only(vec!["obfs-local".to_owned()]),
        },
        select: None,
    };
    let name = ["config.json", "list.txt", "dir/config.json5"][usize::from(flags >> 3) % 3];
    match convert(text, name, &wish, &MinimalSources) {
        Ok(found) => {
            check_converted(&found);
            let again = convert(text, name, &wish, &MinimalSources).expect("as before");
            assert!(again.toml == found.toml && again.notes == found.notes);
        }
        Err(problems) => check_problems(&problems, text),
    }
    match convert(ACL_CONFIG, name, &wish, &SameTextEverywhere(text)) {
        Ok(found) => check_converted(&found),
        Err(problems) => check_problems(&problems, text),
    }
    if text.contains(PLANTED_PASSWORD) {
        return;
    }
    // A password in well-formed JSON appears nowhere but in the file.
    let text = format!(
        r#"{{"server":"a.b","server_port":1,"password":"{PLANTED_PASSWORD}","method":{text}}}"#
    );
    let told = match convert(&text, name, &wish, &MinimalSources) {
        Ok(found) => found
            .notes
            .iter()
            .map(ToString::to_string)
            .collect::<String>(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    };
    assert!(!told.contains(PLANTED_PASSWORD), "{told}");
});
