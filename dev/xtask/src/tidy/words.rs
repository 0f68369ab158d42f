//! The worst words of the lexicon (docs/lexicon.md) stay out of comments, messages
//! and documents.

use super::code_text::{blank_literals, has_word};
use crate::doc_links::document::{prose_lines, strip_code_spans};
use crate::source_files::SourceFile;

/// Words and phrases that no text uses, and the field's word. In pieces, so that this file obeys its own rule.
const REFUSED: &[(&str, &str)] = &[
    (concat!("giv", "es"), "returns, has, lets, yields"),
    (concat!("hands", " out"), "returns"),
    (concat!("is", " told"), "receives, learns"),
    (concat!("are", " told"), "receive, learn"),
    (concat!("who", "ever"), "everyone who, a person who"),
    (concat!("no", "body"), "no one, no process"),
    (concat!("some", "body"), "someone, a user, a peer"),
    (concat!("every", "body"), "everyone, all"),
    (concat!("hi", "s"), "their, its"),
    (concat!("left", " away"), "omitted"),
    (concat!("so", " many"), "up to N, this number of"),
    (concat!("to", " be had"), "available"),
    (concat!("wish", "ed"), "requested, configured"),
    (concat!("thrown", " away"), "discarded"),
    (concat!("takes", " part"), "participates"),
    (concat!("far", " end"), "remote end, peer"),
    (concat!("for", " good"), "permanently"),
    (concat!("octet", "s"), "bytes"),
];

/// Words that open no documentation of an item: a noun phrase, "Returns …" or "True if …" does.
const OPENERS: &[&str] = &[
    concat!("Wh", "at"),
    concat!("Wheth", "er"),
    concat!("Wh", "o"),
    concat!("Wh", "om"),
    concat!("Who", "se"),
];

/// Words of types that a reader cannot place.
const TYPES: &[&str] = &[
    concat!("De", "sk"),
    concat!("Ros", "ter"),
    concat!("Wi", "sh"),
    concat!("Dra", "ft"),
    concat!("Le", "ash"),
];

/// Documents that quote the words, or keep what was written at the time.
const QUOTING: &[&str] = &["docs/lexicon.md", "CHANGELOG.md"];

/// Refused words in the tree.
pub(super) fn faults(sources: &[SourceFile]) -> Vec<String> {
    let read = sources
        .iter()
        .filter(|source| !QUOTING.contains(&source.path.as_str()));
    read.flat_map(|source| of_file(&source.path, &source.text))
        .collect()
}

/// The refused words of one file.
fn of_file(path: &str, text: &str) -> Vec<String> {
    if path.ends_with(".md") {
        let prose = prose_lines(text);
        return prose
            .flat_map(|(number, line)| refused_words(path, number, &strip_code_spans(line)))
            .collect();
    }
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let code = blank_literals(text);
    let mut faults = Vec::new();
    let mut in_doc = false;
    for (number, line) in (1..).zip(comments_and_strings(text, &code).lines()) {
        faults.extend(refused_words(path, number, line));
        let doc = ["///", "//!"]
            .iter()
            .find_map(|mark| line.trim_start().strip_prefix(mark));
        if let Some(first) = doc
            .filter(|_| !in_doc)
            .and_then(|doc| doc.split_whitespace().next())
            && OPENERS.contains(&first)
        {
            faults.push(format!(
                "{path}:{number}: documentation that opens with `{first}`"
            ));
        }
        in_doc = doc.is_some();
    }
    for (number, line) in (1..).zip(code.lines()) {
        for name in TYPES.iter().filter(|name| has_word(line, name)) {
            faults.push(format!("{path}:{number}: a type named `{name}`"));
        }
    }
    faults
}

/// The refused words of one line of prose.
fn refused_words(path: &str, number: usize, line: &str) -> Vec<String> {
    let lower = line.to_lowercase();
    let found = REFUSED.iter().filter(|(word, _)| has_phrase(&lower, word));
    found
        .map(|(word, instead)| format!("{path}:{number}: `{word}`; write: {instead}"))
        .collect()
}

/// True if `line` has `phrase` as words of its own, not as a part of a name such as `some-name`, nor "… up".
fn has_phrase(line: &str, phrase: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '`' | '@' | '{');
    line.match_indices(phrase).any(|(at, _)| {
        let (before, rest) = line.split_at_checked(at).unwrap_or_default();
        let after = rest.strip_prefix(phrase).unwrap_or_default();
        !before.chars().next_back().is_some_and(part_of_name)
            && !after.starts_with(part_of_name)
            && !after.starts_with(" up")
    })
}

/// The characters of `text` that are blank in its `code`; the rest are spaces.
fn comments_and_strings(text: &str, code: &str) -> String {
    text.chars()
        .zip(code.chars())
        .map(|(c, code)| if code == ' ' || code == '\n' { c } else { ' ' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_prose_alone() {
        let word = REFUSED[0].0;
        let source = format!("//! It {word} all.\nlet {word} = \"{word}\";\n/* {word}n */\n");
        assert_eq!(of_file("a.rs", &source).len(), 2);
        let document = format!("A `{word}`.\n```\n{word}\n```\nIt {word}.\n");
        let faults = of_file("a.md", &document);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("a.md:5: "), "{faults:?}");
    }

    #[test]
    fn only_the_first_line_of_documentation_opens_it() {
        let opener = OPENERS[0];
        let source = format!("/// {opener} it is.\nfn a() {{}}\n/// A count\n/// {opener}.\n");
        assert_eq!(of_file("a.rs", &source).len(), 1);
    }

    #[test]
    fn types_are_named_by_the_lexicon() {
        let source = format!("struct {};\n", TYPES[0]);
        assert_eq!(of_file("a.rs", &source).len(), 1);
    }
}
