//! The places of fields in a document: problems that name a field by its path receive its line.
//!
//! The readers work on a tree without positions, because few documents have a problem. If one has, the text is read
//! once more, and the positions of the paths that the problems name are kept. Nothing else is.

use std::collections::HashMap;

use adit_config::text::Problem;
use adit_wire::substr;
use saphyr_parser::{Event, Parser};

use crate::json::MAX_DEPTH;
use crate::json_error::{self, LINE_TERMINATORS};

/// The syntax of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    Yaml,
    /// A list of links, whose paths are `line N`.
    Lines,
}

/// A position, counted from 0 in lines and characters.
type Position = (usize, usize);

/// Adds a place to each problem whose title names a field of the document, or a server or group by its name: the field,
/// or if it does not exist the nearest object around it. The line is redacted.
pub(super) fn add_places(problems: &mut [Problem], text: &str, name: &str, syntax: Syntax) {
    let mut tracker = PathTracker::new(problems.iter().filter(|problem| problem.place.is_none()));
    if tracker.wanted.is_empty() {
        return;
    }
    match syntax {
        Syntax::Json => track_json(text, &mut tracker),
        Syntax::Yaml => track_yaml(text, &mut tracker),
        Syntax::Lines => {
            for line in 0..text.lines().count() {
                tracker.add_key(&format!("line {}", line + 1));
                tracker.start_value((line, 0));
                tracker.end_value();
            }
        }
    }
    let lines = text.split(LINE_TERMINATORS).count();
    for problem in problems {
        if problem.place.is_some() {
            continue;
        }
        let position = named_path(&problem.title).and_then(|path| tracker.position_of(path));
        if let Some(position) = position {
            // A missing value at the end of YAML is on the line after the last one.
            let position = Some(position).filter(|(line, _)| *line < lines);
            let found = json_error::problem_in(text, name, position, String::new(), "");
            problem.place = found.place;
        }
    }
}

/// Returns the first part of a title between backticks: by convention the path of a field.
fn named_path(title: &str) -> Option<&str> {
    let (_, rest) = title.split_once('`')?;
    let (path, _) = rest.split_once('`')?;
    Some(path)
}

/// Returns a path without its last part, or `None` for the whole document.
fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    let end = path.rfind(['.', '[']).unwrap_or(0);
    Some(substr(path, ..end))
}

/// The keys of an object whose value is the name by which others refer to it.
const NAME_KEYS: &[&str] = &["name", "tag", "remarks", "id"];

/// A list or an object that is open.
struct OpenNode {
    /// The length of its path.
    path_len: usize,
    /// The index of the next item of a list; `None` for an object.
    next_index: Option<usize>,
    /// True between a key of an object and the end of its value.
    has_key: bool,
}

/// Follows a document, and keeps the positions of the paths that problems name.
struct PathTracker {
    /// The positions of paths, and of all that are around them.
    wanted: HashMap<String, Option<Position>>,
    path: String,
    open: Vec<OpenNode>,
}

impl PathTracker {
    fn new<'a>(problems: impl Iterator<Item = &'a Problem>) -> Self {
        let mut wanted = HashMap::new();
        for problem in problems {
            let mut next = named_path(&problem.title);
            while let Some(path) = next {
                if wanted.insert(path.to_owned(), None).is_some() {
                    break;
                }
                next = parent(path);
            }
        }
        Self {
            wanted,
            path: String::new(),
            open: Vec::new(),
        }
    }

    /// Returns the position of a path, or of the nearest one around it, which can be the document.
    fn position_of(&self, path: &str) -> Option<Position> {
        let mut next = Some(path);
        while let Some(path) = next {
            if let Some(position) = self.wanted.get(path).copied().flatten() {
                return Some(position);
            }
            next = parent(path);
        }
        None
    }

    /// True if the next scalar is the key of an object.
    fn expects_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|node| node.next_index.is_none() && !node.has_key)
    }

    /// Extends the path with the key of an object.
    fn add_key(&mut self, key: &str) {
        if let Some(node) = self.open.last_mut() {
            node.has_key = true;
        }
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    /// Keeps the position of a scalar, by its path, and as the definition of a name.
    fn add_scalar(&mut self, text: &str, position: Position) {
        self.start_value(position);
        let key = self.path.rsplit('.').next().unwrap_or_default();
        if NAME_KEYS.contains(&key)
            && let Some(found @ None) = self.wanted.get_mut(text)
        {
            *found = Some(position);
        }
        self.end_value();
    }

    /// Keeps the position of a value that starts, if it is wanted. Of equal keys the last counts, as for the readers.
    fn start_value(&mut self, position: Position) {
        if let Some(OpenNode {
            next_index: Some(index),
            ..
        }) = self.open.last_mut()
        {
            self.path.push_str(&format!("[{index}]"));
            *index += 1;
        }
        if let Some(found) = self.wanted.get_mut(&self.path) {
            *found = Some(position);
        }
    }

    /// Returns to the path of the list or object around a value.
    fn end_value(&mut self) {
        let len = self.open.last_mut().map_or(0, |node| {
            node.has_key = false;
            node.path_len
        });
        self.path.truncate(len);
    }

    /// Opens a list or an object. Returns false if there are too many inside each other.
    fn open(&mut self, is_list: bool, position: Position) -> bool {
        self.start_value(position);
        self.open.push(OpenNode {
            path_len: self.path.len(),
            next_index: is_list.then_some(0),
            has_key: false,
        });
        self.open.len() <= MAX_DEPTH
    }

    fn close(&mut self) {
        self.open.pop();
        self.end_value();
    }
}

/// Follows YAML. What an alias refers to has the position of the alias.
fn track_yaml(text: &str, tracker: &mut PathTracker) {
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { return };
        let position = (span.start.line().saturating_sub(1), span.start.col());
        match event {
            Event::Scalar(key, ..) if tracker.expects_key() => tracker.add_key(&key),
            Event::Scalar(text, ..) => tracker.add_scalar(&text, position),
            Event::Alias(_) => tracker.add_scalar("", position),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if !tracker.open(matches!(event, Event::SequenceStart(..)), position) {
                    return;
                }
            }
            Event::SequenceEnd | Event::MappingEnd => tracker.close(),
            Event::DocumentEnd => return,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
    }
}

/// Follows JSON5 that a reader has accepted: only the structure is of interest.
fn track_json(text: &str, tracker: &mut PathTracker) {
    let mut chars = JsonCursor {
        rest: text,
        position: (0, 0),
    };
    loop {
        chars.skip_blanks();
        let position = chars.position;
        let Some(next) = chars.peek() else { return };
        match next {
            '{' | '[' => {
                chars.bump();
                if !tracker.open(next == '[', position) {
                    return;
                }
            }
            '}' | ']' => {
                chars.bump();
                tracker.close();
            }
            ',' | ':' => chars.bump(),
            _ => {
                let word = if next == '"' || next == '\'' {
                    chars.take_string(next)
                } else {
                    chars.take_word()
                };
                if tracker.expects_key() {
                    tracker.add_key(word);
                } else {
                    tracker.add_scalar(word, position);
                }
            }
        }
    }
}

/// The rest of a text, and its position.
struct JsonCursor<'t> {
    rest: &'t str,
    position: Position,
}

impl<'t> JsonCursor<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) {
        let mut chars = self.rest.chars();
        let Some(c) = chars.next() else { return };
        self.rest = chars.as_str();
        // The line terminators of JSON5; a pair of them is one.
        let ends_line = matches!(c, '\n' | '\u{2028}' | '\u{2029}')
            || c == '\r' && !self.rest.starts_with('\n');
        if ends_line {
            self.position = (self.position.0 + 1, 0);
        } else {
            self.position.1 += 1;
        }
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) {
        loop {
            if self.rest.starts_with("//") {
                while self
                    .peek()
                    .is_some_and(|c| !matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}'))
                {
                    self.bump();
                }
            } else if self.rest.starts_with("/*") {
                self.bump();
                self.bump();
                while !self.rest.is_empty() && !self.rest.starts_with("*/") {
                    self.bump();
                }
                self.bump();
                self.bump();
            } else if self
                .peek()
                .is_some_and(|c| c.is_whitespace() || c == '\u{feff}')
            {
                self.bump();
            } else {
                return;
            }
        }
    }

    /// Returns the inside of a string, with its escapes: no field that adit reads needs one.
    fn take_string(&mut self, quote: char) -> &'t str {
        self.bump();
        let start = self.rest;
        while let Some(c) = self.peek().filter(|c| *c != quote) {
            self.bump();
            if c == '\\' {
                self.bump();
            }
        }
        let inside = self.part_since(start);
        self.bump();
        inside
    }

    /// Returns a number, a literal, or a key without quotation marks. It has at least one character.
    fn take_word(&mut self) -> &'t str {
        let start = self.rest;
        self.bump();
        while self.peek().is_some_and(|c| {
            !c.is_whitespace() && !matches!(c, '{' | '}' | '[' | ']' | ',' | ':' | '/' | '"' | '\'')
        }) {
            self.bump();
        }
        self.part_since(start)
    }

    /// Returns the part between an earlier rest and this one.
    fn part_since(&self, start: &'t str) -> &'t str {
        substr(start, ..start.len() - self.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns line and column of each path, counted from 1; `None` without a place.
    fn places(text: &str, syntax: Syntax, paths: &[&str]) -> Vec<Option<(usize, usize)>> {
        let problem = |path: &&str| Problem::without_place(format!("`{path}` is wrong"), "mend it");
        let mut problems: Vec<Problem> = paths.iter().map(problem).collect();
        add_places(&mut problems, text, "c", syntax);
        let place = |problem: &Problem| {
            assert_eq!(problem.help, ["mend it"]);
            problem.place.as_ref().map(|at| (at.line, at.column))
        };
        problems.iter().map(place).collect()
    }

    #[test]
    fn json_paths_have_lines() {
        let text = "// servers: [\n{ 'servers': [\r\n  {\"server\": \"a\\\"]\", port: 0x1},\n  /* { */ {\"port\": [1]}\n], \
                    \"port\": 1, \"port\":\n 2 }";
        let paths = [
            "servers",
            "servers[0]",
            "servers[0].port",
            "servers[1].port[0]",
            "servers[1].missing",
            "port",
            "missing",
        ];
        assert_eq!(
            places(text, Syntax::Json, &paths),
            [
                Some((2, 14)),
                Some((3, 3)),
                Some((3, 28)),
                Some((4, 21)),
                Some((4, 11)),
                Some((6, 2)),
                Some((2, 1))
            ]
        );
    }

    #[test]
    fn yaml_paths_have_lines() {
        let text = "port: &p 1\nproxies:\n  - {name: a, port: x}\n  - name: b\n    port: *p\n";
        let paths = ["proxies[0].port", "proxies[1].port", "proxies[1].cipher"];
        assert_eq!(
            places(text, Syntax::Yaml, &paths),
            [Some((3, 21)), Some((5, 11)), Some((4, 5))]
        );
    }

    #[test]
    fn names_and_lines_have_lines() {
        let text = "proxies:\n  - {port: 1, name: one}\ngroups:\n  - name: one.two\n";
        assert_eq!(
            places(text, Syntax::Yaml, &["one", "one.two", "two"]),
            [Some((2, 21)), Some((4, 11)), Some((1, 1))]
        );
        let text = "[{\"tag\": \"one\"}]";
        assert_eq!(places(text, Syntax::Json, &["one"]), [Some((1, 10))]);
        let found = places("a\n\nb", Syntax::Lines, &["line 1", "line 3", "line 4"]);
        assert_eq!(found, [Some((1, 1)), Some((3, 1)), None]);
    }

    #[test]
    fn secrets_of_the_line_are_not_shown() {
        let mut problems = [Problem::without_place("`port` is wrong", "mend it")];
        add_places(
            &mut problems,
            "{\"password\": \"hunter2\", \"port\": \"s3cret\"}",
            "c",
            Syntax::Json,
        );
        let shown = problems[0].to_string();
        assert!(
            !shown.contains("hunter2") && !shown.contains("s3cret"),
            "{shown}"
        );
        assert!(shown.contains("c:1:33"), "{shown}");
    }

    #[test]
    fn broken_texts_end() {
        let paths = ["a.b[0]", "", "[0]", "a..", "[["];
        for text in [
            "",
            "{",
            "}}]",
            "{a:",
            "\"",
            "'\\",
            "/*",
            "//",
            "{a:{b:[",
            "{\"a\"\"a\"",
            "a/b",
        ] {
            places(text, Syntax::Json, &paths);
            places(text, Syntax::Yaml, &paths);
        }
        places(&"[".repeat(100_000), Syntax::Json, &paths);
    }

    const JSON: &str = "// a\r\n{\"servers\": [{'port': 1, name: \"ä\\\"b\",}, /* ] */ [2, {x: null}]], \"id\": \"o\u{2028}\"}";
    const YAML: &str =
        "a: &x [1, {b: c}]\r\nname: ä\nlist:\n  - *x\n  - \"q\\n\"\n  - |\n   text\n? k\n: v\n";

    proptest! {
        /// Places in a text that is cut, or has another character, are in this text.
        #[test]
        fn places_of_broken_texts_are_in_the_text(
            is_json: bool,
            cut in 0..200_usize,
            at in 0..200_usize,
            with in prop::sample::select(vec!["", "{", "}", "[", "]", "'", "\"", ":", ",", "\n", "\r", "\\", "/*", "-", "ä"]),
        ) {
            let (text, syntax) = match is_json {
                true => (JSON, Syntax::Json),
                false => (YAML, Syntax::Yaml),
            };
            let mut chars: Vec<String> = text.chars().take(cut).map(String::from).collect();
            if let Some(c) = chars.get_mut(at) {
                with.clone_into(c);
            }
            let text = chars.concat();
            let paths = [
                "servers", "servers[0].port", "servers[1][1].x", "id", "o", "ä", "a[1].b", "list[0]", "list[2]", "k",
                "missing.field",
            ];
            let lines: Vec<&str> = text.split(LINE_TERMINATORS).collect();
            for (line, column) in places(&text, syntax, &paths).into_iter().flatten() {
                prop_assert!((1..=lines.len()).contains(&line), "line {} of {:?}", line, text);
                let longest = lines.iter().map(|line| line.chars().count()).max();
                prop_assert!(column >= 1 && Some(column) <= longest.map(|len| len + 1));
            }
        }
    }
}
