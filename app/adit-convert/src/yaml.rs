//! YAML as Clash writes its configurations: a text into the same tree as JSON, within bounds.
//!
//! Depth, values and bytes are bounded after aliases have been expanded, so a short text cannot grow
//! to a large tree. Plain scalars stay texts, except for `null`, `true` and `false`: a password of
//! digits is a password, and numbers are read from texts wherever they are expected.

use std::collections::{HashMap, HashSet};

use adit_config::text::Problem;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use zeroize::Zeroizing;

use crate::json::{Json, MAX_DEPTH, MAX_VALUES};
use crate::json_error;

/// Maximum number of bytes of all texts in a tree.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// The prefix of the tags of the core schema.
const CORE_TAGS: &str = "tag:yaml.org,2002:";
/// The key whose value is merged into its mapping.
const MERGE_KEY: &str = "<<";
const HINT: &str = "indent with spaces; put texts with `: `, ` #` or a special first character between quotation marks";

/// Reads the first document of a text.
pub(super) fn parse(text: &str, name: &str) -> Result<Json, Box<Problem>> {
    let mut builder = TreeBuilder::default();
    for event in Parser::new_from_str(text) {
        let (event, marker) = match event {
            Ok((event, span)) => (event, span.start),
            Err(why) => return Err(problem(text, name, *why.marker(), why.info())),
        };
        match builder.add_event(event) {
            Ok(None) => {}
            Ok(Some(tree)) => return Ok(tree),
            Err(what) => return Err(problem(text, name, marker, &what)),
        }
    }
    // A text without a node.
    Ok(Json::Null)
}

/// The problem at a marker, whose lines begin at 1 and whose columns begin at 0.
fn problem(text: &str, name: &str, marker: Marker, what: &str) -> Box<Problem> {
    let position = Some((marker.line().saturating_sub(1), marker.col()));
    let title = format!("not YAML that adit reads: {what}");
    Box::new(json_error::problem_in(text, name, position, title, HINT))
}

/// A list or mapping that is still open.
struct OpenNode {
    /// Its anchor; 0 without one.
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<Json>),
    Mapping {
        entries: Vec<(String, Json)>,
        /// Entries of merged mappings, which come after its own.
        merged: Vec<(String, Json)>,
        /// The key whose value is next.
        key: Option<String>,
    },
}

/// The size of a tree.
#[derive(Clone, Copy, Default)]
struct TreeSize {
    values: usize,
    bytes: usize,
    depth: usize,
}

/// Builds a tree from events.
#[derive(Default)]
struct TreeBuilder {
    open: Vec<OpenNode>,
    /// Complete nodes with an anchor.
    anchors: HashMap<usize, (Json, TreeSize)>,
    used: TreeSize,
}

impl TreeBuilder {
    /// Adds an event. Returns the tree when it is complete.
    fn add_event(&mut self, event: Event<'_>) -> Result<Option<Json>, String> {
        match event {
            Event::Alias(anchor) => {
                // An open node has an anchor, too, but is not complete.
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return Err("an alias inside the node that it refers to".to_owned());
                };
                let (node, size) = (node.clone(), *size);
                self.count(size)?;
                self.check_depth(size.depth)?;
                self.add_node(node, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(TreeSize {
                    values: 1,
                    bytes: text.len(),
                    depth: 0,
                })?;
                if self.expects_key() {
                    return self.add_key(&text, anchor);
                }
                self.add_node(scalar(&text, style, tag.as_deref()), anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, OpenContent::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(
                anchor,
                OpenContent::Mapping {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    key: None,
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(node) = self.open.pop() else {
                    return Ok(None);
                };
                self.add_node(node.content.close(), node.anchor)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(None),
        }
    }

    /// True if the next node is the key of a mapping.
    fn expects_key(&self) -> bool {
        let content = self.open.last().map(|node| &node.content);
        matches!(content, Some(OpenContent::Mapping { key: None, .. }))
    }

    fn open(&mut self, anchor: usize, content: OpenContent) -> Result<Option<Json>, String> {
        if self.expects_key() {
            return Err("a key that is not a text".to_owned());
        }
        self.count(TreeSize {
            values: 1,
            ..TreeSize::default()
        })?;
        self.check_depth(1)?;
        self.open.push(OpenNode { anchor, content });
        Ok(None)
    }

    fn add_key(&mut self, text: &str, anchor: usize) -> Result<Option<Json>, String> {
        let node = Json::Text(Zeroizing::new(text.to_owned()));
        self.keep_anchor(&node, anchor)?;
        self.add_node(node, 0)
    }

    /// Adds a complete node to the list or mapping that is open.
    fn add_node(&mut self, node: Json, anchor: usize) -> Result<Option<Json>, String> {
        self.keep_anchor(&node, anchor)?;
        let Some(parent) = self.open.last_mut() else {
            return Ok(Some(node));
        };
        match &mut parent.content {
            OpenContent::List(items) => items.push(node),
            OpenContent::Mapping {
                entries,
                merged,
                key,
            } => match key.take() {
                None => {
                    let text = node.as_str().ok_or("a key that is not a text")?;
                    *key = Some(text.to_owned());
                }
                Some(key) if key == MERGE_KEY => merge(merged, node)?,
                Some(key) => entries.push((key, node)),
            },
        }
        Ok(None)
    }

    /// Keeps a copy of a node that aliases can refer to.
    fn keep_anchor(&mut self, node: &Json, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            let size = size_of(node);
            self.count(size)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(())
    }

    fn count(&mut self, size: TreeSize) -> Result<(), String> {
        self.used.values = self.used.values.saturating_add(size.values);
        self.used.bytes = self.used.bytes.saturating_add(size.bytes);
        if self.used.values > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} values"));
        }
        if self.used.bytes > MAX_TEXT_BYTES {
            return Err(format!("more than {MAX_TEXT_BYTES} bytes of texts"));
        }
        Ok(())
    }

    fn check_depth(&self, more: usize) -> Result<(), String> {
        if self.open.len() + more > MAX_DEPTH {
            return Err(format!(
                "more than {MAX_DEPTH} lists and mappings inside each other"
            ));
        }
        Ok(())
    }
}

impl OpenContent {
    fn close(self) -> Json {
        match self {
            Self::List(items) => Json::List(items),
            Self::Mapping {
                mut entries,
                merged,
                ..
            } => {
                if !merged.is_empty() {
                    let own: HashSet<String> = entries.iter().map(|(key, _)| key.clone()).collect();
                    // Of several merged mappings the first counts; of equal keys the last is read.
                    let mut merged: Vec<_> = merged
                        .into_iter()
                        .filter(|(key, _)| !own.contains(key))
                        .collect();
                    merged.reverse();
                    entries.append(&mut merged);
                }
                Json::Object(entries)
            }
        }
    }
}

/// Collects the entries of the value of a merge key: a mapping, or a list of mappings.
fn merge(merged: &mut Vec<(String, Json)>, node: Json) -> Result<(), String> {
    let mappings = match node {
        Json::List(items) => items,
        other => vec![other],
    };
    for mapping in mappings {
        let Json::Object(entries) = mapping else {
            return Err("`<<` needs a mapping, or a list of mappings".to_owned());
        };
        merged.extend(entries);
    }
    Ok(())
}

/// The value of a scalar, in the core schema but for numbers.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Json {
    let is_text = tag.is_some_and(|tag| tag.handle == CORE_TAGS && tag.suffix == "str");
    if style == ScalarStyle::Plain && !is_text {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Json::Null,
            "true" | "True" | "TRUE" => return Json::Bool(true),
            "false" | "False" | "FALSE" => return Json::Bool(false),
            _ => {}
        }
    }
    Json::Text(Zeroizing::new(text.to_owned()))
}

fn size_of(node: &Json) -> TreeSize {
    let mut size = TreeSize {
        values: 1,
        ..TreeSize::default()
    };
    let mut add = |key: usize, inner: &Json| {
        let inner = size_of(inner);
        size.values += inner.values;
        size.bytes += inner.bytes + key;
        size.depth = size.depth.max(inner.depth);
    };
    match node {
        Json::List(items) => items.iter().for_each(|item| add(0, item)),
        Json::Object(entries) => entries
            .iter()
            .for_each(|(key, value)| add(key.len(), value)),
        Json::Text(text) => size.bytes = text.len(),
        Json::Null | Json::Bool(_) | Json::Whole(_) | Json::Real(_) => {}
    }
    if matches!(node, Json::List(_) | Json::Object(_)) {
        size.depth += 1;
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        crate::json::parse_strict(text, "").unwrap()
    }

    #[test]
    fn documents_are_read() {
        let text = "\
# a comment
proxies:
  - {name: \"a: b\", port: 443, udp: true, password: 0123}
  - name: 'it''s'
    server: ~
    list: [x, 'true', null]
text: |
  two
  lines
---
second: document
";
        let expected = r#"{"proxies": [
            {"name": "a: b", "port": "443", "udp": true, "password": "0123"},
            {"name": "it's", "server": null, "list": ["x", "true", null]}],
            "text": "two\nlines\n"}"#;
        assert_eq!(parse(text, "").unwrap(), json(expected));
        for empty in ["", "# nothing\n", "---\n"] {
            assert_eq!(parse(empty, "").unwrap(), Json::Null, "{empty:?}");
        }
        assert_eq!(parse("!!str true", "").unwrap().as_str(), Some("true"));
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        let text = "\
base: &base {type: select, url: u}
other: &other {url: v, interval: 3}
groups:
  - {name: a, <<: *base, url: own}
  - <<: [*base, *other]
    name: b
copy: *base
";
        let tree = parse(text, "").unwrap();
        let wish = crate::ConvertOptions::default();
        let sources = adit_config::text::MemorySources::default();
        let mut clerk = crate::ConversionContext::new(&wish, &sources, "");
        let mut top =
            crate::fields::ObjectFields::of_object(&tree, String::new(), &mut clerk).unwrap();
        assert_eq!(
            *top.get("copy").unwrap(),
            json(r#"{"type":"select","url":"u"}"#)
        );
        let groups = top.list_field("groups", &mut clerk);
        let mut field = |at: usize, name: &str| {
            let item = &groups[at];
            let mut fields =
                crate::fields::ObjectFields::of_object(item, String::new(), &mut clerk).unwrap();
            fields.get(name).and_then(Json::as_str).map(str::to_owned)
        };
        assert_eq!(field(0, "url").as_deref(), Some("own"));
        assert_eq!(field(0, "type").as_deref(), Some("select"));
        assert_eq!(field(1, "url").as_deref(), Some("u"));
        assert_eq!(field(1, "interval").as_deref(), Some("3"));
    }

    #[test]
    fn what_grows_without_bounds_is_refused() {
        let said = |text: &str| parse(text, "c.yaml").unwrap_err().to_string();
        for text in ["a: &x [*x]", "a: &x {b: *x}", "a: &x\n  - &y [*x]\n"] {
            assert!(said(text).contains("an alias inside the node"), "{text}");
        }
        // Each line has ten times as many values as the one before it.
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let items = vec![format!("*a{}", i - 1); 10].join(", ");
            laughs += &format!("a{i}: &a{i} [{items}]\n");
        }
        assert!(said(&laughs).contains("values"), "{}", said(&laughs));
        let long = format!(
            "a: &a {}\nb: [{}]",
            "x".repeat(1 << 20),
            vec!["*a"; 100].join(", ")
        );
        assert!(said(&long).contains("bytes of texts"), "{}", said(&long));
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&deep(MAX_DEPTH), "").is_ok());
        assert!(said(&deep(MAX_DEPTH + 1)).contains("inside each other"));
        let chained: String = (1..80)
            .map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1))
            .collect();
        assert!(said(&format!("a0: &a0 x\n{chained}")).contains("inside each other"));
    }

    #[test]
    fn errors_have_a_place_and_no_secret() {
        let text = "proxies:\n  - name: a\n    password: \"hunter2\n";
        let problem = parse(text, "c.yaml").unwrap_err();
        let said = problem.to_string();
        assert!(
            said.starts_with("error: not YAML that adit reads: "),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
        assert!(problem.place.unwrap().line >= 3);
        for text in [
            "a: b: c",
            "*missing",
            "? [a]\n: b",
            "a: }",
            "\t- a\n\t\tb: }",
            "<<: x\na: b",
        ] {
            assert!(parse(text, "").is_err(), "{text}");
        }
    }
}
