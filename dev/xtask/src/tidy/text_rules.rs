//! Rules for the text of one file.

use super::code_paths::{collect_paths, tokenize};
use super::code_text::{blank_literals, has_word};
use super::unsafe_list;
use crate::source_files::SourceFile;

/// Names that a protocol core and its tests must not contain: time, randomness and the system come
/// in as arguments. `Duration` is that of `core::time`, which has no clock.
const IMPURE: &[&str] = &[
    "std::net",
    "std::time",
    "SystemTime",
    "Instant",
    "tokio",
    "rand",
    "rustix",
    "std::thread",
    "std::fs",
    "std::env",
];

/// Names that some files of proto may contain, each with the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("/examples/", "std::env", "a program has arguments"),
    ("/examples/", "rustix", "a program may measure its process"),
    (
        "proto/adit-shadowsocks/src/salt_pool/tests.rs",
        "std::thread",
        "the filter is shared by threads",
    ),
    (
        "proto/adit-crypto/src/decision_log/tests.rs",
        "std::thread",
        "steps of several threads are distinguished",
    ),
];

/// Beginnings of one machine's paths. Written in parts so that this file obeys its own rule.
const MACHINE_PATHS: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "tmp/"),
];

/// Returns the violations in one file, with their places.
pub(super) fn find_faults(source: &SourceFile) -> Vec<String> {
    let mut faults = find_machine_paths(source);
    if source.path.ends_with(".rs") {
        faults.extend(missing_module_doc(source));
        let code = blank_literals(&source.text);
        for (number, line) in code.lines().enumerate() {
            let place = format!("{}:{}", source.path, number + 1);
            if has_word(line, "unsafe") && unsafe_list::unsafe_reason(&source.path).is_none() {
                faults.push(format!(
                    "{place}: `unsafe` outside of the modules that may contain it"
                ));
            }
            if has_word(line, concat!("unbounded", "_channel")) {
                faults.push(format!("{place}: an unbounded queue (REL-7)"));
            }
        }
        if source.path.starts_with("proto/") {
            faults.extend(impure_names(&source.path, &code));
        }
        faults.extend(repeated_sources(source));
    }
    faults
}

/// Returns errors whose message contains their source: a report of the error chain would print it
/// twice.
fn repeated_sources(source: &SourceFile) -> Vec<String> {
    let mark = concat!("#[", "error(");
    let mut faults = Vec::new();
    for (at, _) in source.text.match_indices(mark) {
        let (before, rest) = source.text.split_at(at);
        let Some((attribute, item)) = rest.split_once(")]\n") else {
            break;
        };
        // Up to the end of the variant or of the type, whose lines are indented like the mark.
        let indent = before.rsplit('\n').next().unwrap_or_default();
        let own = item
            .find(&format!("\n{indent}}}"))
            .into_iter()
            .chain(["),\n", ");\n"].iter().filter_map(|end| item.find(end)))
            .min();
        let fields = &item[..own.unwrap_or(item.len())];
        let repeats = source_field_name(fields).is_some_and(|name| {
            ["}", ":"]
                .iter()
                .any(|end| attribute.contains(&format!("{{{name}{end}")))
        });
        if repeats {
            let line = before.matches('\n').count() + 1;
            faults.push(format!(
                "{}:{line}: an error that repeats the message of its source: `#[error(transparent)]`, a \
                 text without it, or no source",
                source.path
            ));
        }
    }
    faults
}

/// Returns the name by which a message refers to the source of an error with these fields.
fn source_field_name(fields: &str) -> Option<&str> {
    let marked = ["#[from]", "#[source]"]
        .iter()
        .find_map(|mark| fields.split_once(mark));
    let Some((before, after)) = marked else {
        return fields.contains(" source: ").then_some("source");
    };
    if before.trim_end().ends_with('(') {
        return Some("0");
    }
    let name = after.trim_start().trim_start_matches("pub ");
    name.split_once(':').map(|(name, _)| name)
}

fn missing_module_doc(source: &SourceFile) -> Option<String> {
    let missing = !source.text.starts_with("//!");
    missing.then(|| {
        format!(
            "{}:1: the file must begin with `//!` and a description",
            source.path
        )
    })
}

fn impure_names(path: &str, code: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for named in collect_paths(&tokenize(code)) {
        let name = named.parts.join("::");
        let word = IMPURE
            .iter()
            .find(|word| is_at_or_below(&name, word) || named.parts.contains(word));
        let pardoned = EXCEPTIONS
            .iter()
            .any(|(place, pardoned, _)| path.contains(place) && is_at_or_below(&name, pardoned));
        if let Some(word) = word.filter(|_| !pardoned) {
            let line = named.line;
            faults.push(format!("{path}:{line}: proto contains `{word}`"));
        }
    }
    faults
}

/// Returns true if a path leads to `place` or below it.
fn is_at_or_below(path: &str, place: &str) -> bool {
    let rest = path.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn find_machine_paths(source: &SourceFile) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for path in MACHINE_PATHS {
            let inside_longer = |at: usize| {
                let before = line.get(..at).and_then(|head| head.chars().next_back());
                before.is_some_and(|c| c.is_alphanumeric() || "._-}".contains(c))
            };
            if line.match_indices(path).any(|(at, _)| !inside_longer(at)) {
                faults.push(format!(
                    "{}:{}: path of a machine `{path}`",
                    source.path,
                    number + 1
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(path: &str, text: &str) -> Vec<String> {
        find_faults(&SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_file_without_a_doc_is_a_fault() {
        assert_eq!(
            judge("app/a/src/x.rs", "//! What it is.\nfn f() {}\n"),
            [""; 0]
        );
        assert_eq!(judge("app/a/src/x.rs", "fn f() {}\n").len(), 1);
        assert_eq!(judge("docs/x.md", "# Title\n"), [""; 0]);
    }

    #[test]
    fn an_error_does_not_repeat_its_source() {
        let judged = |attribute: &str, field: &str| {
            let text =
                format!("//! Doc.\nenum E {{\n    #[error({attribute})]\n    A{field},\n}}\n");
            judge("io/a/src/x.rs", &text).len()
        };
        assert_eq!(judged("\"{0}\"", "(#[from] io::Error)"), 1);
        assert_eq!(judged("\"{0}\"", "(#[source] io::Error)"), 1);
        assert_eq!(judged("\"{source}\"", " { source: io::Error }"), 1);
        assert_eq!(judged("transparent", "(#[from] io::Error)"), 0);
        assert_eq!(judged("\"{0}\"", "(String)"), 0);
        assert_eq!(judged("\"no {0:?}\"", "(#[from] io::Error)"), 1);
        assert_eq!(judged("\"no\"", "(#[from] io::Error)"), 0);
        let named = " {\n        at: u8,\n        #[source]\n        why: io::Error,\n    }";
        assert_eq!(judged("\"no {at}: {why}\"", named), 1);
        assert_eq!(judged("\"no {at}\"", named), 0);
        assert_eq!(judged("\"no {why}\"", " { why: io::Error }"), 0);
    }

    #[test]
    fn proto_is_pure() {
        for line in [
            "use std::net::TcpStream;",
            "let t = std::time::Duration::ZERO;",
            "fn f(t: SystemTime) {}",
            "let n = Instant::now();",
            "tokio::spawn(async {});",
            "let r = rand::random();",
            "std::thread::yield_now();",
            "std::fs::read(p)",
            "std::env::var(n)",
            "use std::{env, hint::black_box};",
            "use std::{\n    mem,\n    time::Instant,\n};",
        ] {
            let text = format!("//! Doc.\n{line}\n");
            assert_eq!(judge("proto/adit-x/src/y.rs", &text).len(), 1, "{line}");
            assert_eq!(judge("io/adit-x/src/y.rs", &text), [""; 0], "{line}");
            assert_eq!(
                judge("proto/adit-x/tests/it/y.rs", &text).len(),
                1,
                "{line}"
            );
            let tested = format!("//! Doc.\n#[cfg(test)]\nmod tests {{ {line} }}\n");
            assert_eq!(judge("proto/adit-x/src/y.rs", &tested).len(), 1, "{line}");
        }
        let words = "//! Doc.\n// no tokio, no std::net\nlet operand = \"std::fs\";\n";
        assert_eq!(judge("proto/adit-x/src/y.rs", words), [""; 0]);
        let program = "//! Doc.\nuse std::{env, mem};\nuse rustix::time::ClockId;\n";
        assert_eq!(judge("proto/adit-x/examples/y.rs", program), [""; 0]);
        assert_eq!(judge("proto/adit-x/src/y.rs", program).len(), 2);
    }

    #[test]
    fn unsafe_stands_only_where_it_may() {
        let text = "//! Doc.\nlet x = unsafe { y() };\n";
        assert_eq!(judge("app/adit-x/src/y.rs", text).len(), 1);
        for (module, _) in unsafe_list::MODULES {
            assert_eq!(judge(&format!("{module}y.rs"), text), [""; 0]);
        }
        assert_eq!(
            judge("app/adit-x/src/y.rs", "//! Doc.\n#![forbid(unsafe_code)]\n"),
            [""; 0]
        );
    }

    #[test]
    fn unbounded_queues_are_faults() {
        let text = format!(
            "//! Doc.\nlet q = mpsc::{}();\n",
            concat!("unbounded", "_channel")
        );
        assert_eq!(judge("io/adit-x/src/y.rs", &text).len(), 1);
    }

    #[test]
    fn machine_paths_are_faults_in_docs_too() {
        for path in MACHINE_PATHS {
            assert_eq!(judge("docs/x.md", &format!("see {path}file\n")).len(), 1);
            assert_eq!(judge("docs/x.md", &format!("see a{path}file\n")), [""; 0]);
        }
    }
}
