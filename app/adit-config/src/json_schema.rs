//! The JSON Schema of the configuration file, generated from the tables of keys that the parser uses.
//!
//! The schema accepts every file that the parser accepts. What depends on two keys, and the inside of URLs, is left to
//! the parser.

use serde_json::{Map, Value, json};

use crate::grammar::MAX_URL_LEN;
use crate::plan::toml_file::FILE_KEYS;
use crate::plan::toml_file::file_keys::{FileKey, ValueType};
use crate::schema::EndpointRole;
use crate::scheme::{SchemeWithCarrier, schemes};
use crate::text::duration_pattern;

/// The dialect of the schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The names of routes and groups.
const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";
/// Listeners without a scheme.
const SHORT_LISTENER_PATTERN: &str = "^([^@?#]*:)?[0-9]+([?#][^@]*)?$";

/// Returns a JSON Schema (draft 2020-12) of the configuration file, as indented text.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = table_schema(&FILE_KEYS);
    let more = [
        ("$schema", json!(DIALECT)),
        ("title", json!("Configuration file of adit")),
        ("$defs", definitions()),
    ];
    for (key, value) in more {
        schema.insert(key.to_owned(), value);
    }
    format!("{:#}", Value::Object(schema))
}

/// Returns the schemas that several keys refer to.
fn definitions() -> Value {
    let hop = json!({
        "type": "string",
        "description": "The URL of a server: `adit help URLS`.",
        "maxLength": MAX_URL_LEN,
        "pattern": url_pattern(EndpointRole::Hop),
    });
    let hops = json!({ "type": "array", "items": reference("hop"), "minItems": 1 });
    let listener = json!({
        "description": "The URL of a listener, or a port for `mixed://` on 127.0.0.1: `adit help URLS`.",
        "type": "string",
        "maxLength": MAX_URL_LEN,
        "anyOf": [
            { "pattern": url_pattern(EndpointRole::Listener) },
            { "pattern": SHORT_LISTENER_PATTERN },
        ],
    });
    let stage = json!({
        "anyOf": [
            reference("hop"),
            reference("name"),
            hops,
        ],
    });
    json!({
        "hop": hop,
        "listener": listener,
        "name": { "type": "string", "pattern": NAME_PATTERN },
        "stage": stage,
        "member": one_or_some(&reference("hop")),
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a value or a list of at least one.
fn one_or_some(value: &Value) -> Value {
    json!({ "anyOf": [value, { "type": "array", "items": value, "minItems": 1 }] })
}

/// Returns the schema of a table.
fn table_schema(keys: &[FileKey]) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys {
        let mut value = value_schema(&key.value);
        if let Value::Object(value) = &mut value {
            value.insert("description".to_owned(), json!(key.doc));
        }
        properties.insert(key.name.to_owned(), value);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    let required = keys.iter().filter(|key| key.is_required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn value_schema(value: &ValueType) -> Value {
    let text = json!({ "type": "string" });
    match value {
        ValueType::Boolean => json!({ "type": "boolean" }),
        ValueType::Text => text,
        ValueType::FileText => json!({ "type": "string", "pattern": "^@." }),
        ValueType::Target => json!({ "type": "string", "pattern": ":[0-9]+$" }),
        ValueType::Duration => json!({ "type": "string", "pattern": duration_pattern() }),
        ValueType::Number(from, to) => {
            json!({ "type": "integer", "minimum": from, "maximum": to })
        }
        ValueType::Words(words) => json!({ "enum": words() }),
        ValueType::Texts => json!({ "anyOf": [text, { "type": "array", "items": text }] }),
        ValueType::SomeTexts => one_or_some(&text),
        ValueType::TextOrNumber => {
            json!({ "anyOf": [text, { "type": "integer", "minimum": 1 }] })
        }
        ValueType::Listeners => one_or_some(&reference("listener")),
        ValueType::Chain => json!({
            "anyOf": [
                reference("stage"),
                { "type": "array", "items": reference("stage") },
            ],
        }),
        ValueType::Members => {
            json!({ "type": "array", "items": reference("member"), "minItems": 1 })
        }
        ValueType::NamedSecrets(most) => json!({
            "type": "object",
            "additionalProperties": text,
            "minProperties": 1,
            "maxProperties": most,
        }),
        ValueType::Table(keys) => Value::Object(table_schema(keys)),
        ValueType::NamedTables(keys) => json!({
            "type": "object",
            "propertyNames": reference("name"),
            "additionalProperties": table_schema(keys),
        }),
        ValueType::Tables(keys) => json!({ "type": "array", "items": table_schema(keys) }),
        ValueType::SomeTables(keys) => {
            json!({ "type": "array", "items": table_schema(keys), "minItems": 1 })
        }
    }
}

/// Returns a regular expression for the start of URLs with this role.
fn url_pattern(role: EndpointRole) -> String {
    let mut names = Vec::new();
    for scheme in schemes().iter().copied() {
        let carriers = scheme.carriers.iter().map(|carrier| Some(*carrier));
        for carrier in [None].into_iter().chain(carriers) {
            let written = SchemeWithCarrier { scheme, carrier };
            if written.roles().includes_role(role) {
                names.push(ignoring_case(&written.to_string()));
            }
        }
    }
    format!("^({})://", names.join("|"))
}

/// Returns a regular expression for a name whose case is ignored. JSON Schema has no flag for that.
fn ignoring_case(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' => pattern.extend(['[', c.to_ascii_uppercase(), c, ']']),
            '+' | '.' => pattern.extend(['\\', c]),
            c => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use regex_lite::Regex;

    use super::*;

    #[test]
    fn patterns_are_those_of_the_schemes() {
        let [listener, hop] = [EndpointRole::Listener, EndpointRole::Hop]
            .map(|role| Regex::new(&url_pattern(role)).unwrap());
        for (text, listens, is_hop) in [
            ("mixed://127.0.0.1:1", true, false),
            ("SS://x", true, true),
            ("ss+kcp://x", true, true),
            ("tcp+udp://x", true, false),
            ("udp+fec://x", true, true),
            ("direct://", false, true),
            ("sss://x", false, false),
            ("ss", false, false),
        ] {
            let found = (listener.is_match(text), hop.is_match(text));
            assert_eq!(found, (listens, is_hop), "{text}");
        }
        for scheme in schemes() {
            let listens = scheme.roles.includes_role(EndpointRole::Listener);
            assert_eq!(listener.is_match(scheme.form), listens, "{}", scheme.form);
        }
        let short = Regex::new(SHORT_LISTENER_PATTERN).unwrap();
        for text in [
            "1080",
            ":1080",
            "[::1]:1080",
            "1080?udp=false#a",
            "a:1",
            "host",
            ":",
            "a@b:1",
        ] {
            let expanded = crate::expand_short_listener(text);
            assert_eq!(short.is_match(text), expanded.is_some(), "{text}");
        }
    }

    #[test]
    fn every_row_has_a_sentence() {
        fn check(keys: &[FileKey]) {
            for key in keys {
                assert!(key.doc.ends_with('.'), "{}", key.name);
                match &key.value {
                    ValueType::Table(keys)
                    | ValueType::NamedTables(keys)
                    | ValueType::Tables(keys)
                    | ValueType::SomeTables(keys) => check(keys),
                    _ => {}
                }
            }
        }
        check(&FILE_KEYS);
    }
}
