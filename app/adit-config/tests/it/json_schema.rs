//! The JSON Schema of the file: it accepts what the parser accepts, and lists the keys of the reference.

use std::fs;
use std::path::{Path, PathBuf};

use adit_config::{Plan, json_schema};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

const LOCATION: &str = "https://adit.test/adit.json";
const ROUTE: &str = "[route.a]\nlisten = \"1080\"\n";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A compiled schema.
struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let schema: Value = serde_json::from_str(&json_schema()).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource(LOCATION, schema).unwrap();
        let mut schemas = Schemas::new();
        let root = compiler.compile(LOCATION, &mut schemas).unwrap();
        Self { schemas, root }
    }

    /// Returns the error of a file, if there is one.
    fn error_of(&self, text: &str) -> Option<String> {
        let file: Value = toml::from_str(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let result = self.schemas.validate(&file, self.root);
        result.err().map(|why| why.to_string())
    }
}

/// Returns the pages in a folder and in those below it.
fn pages_in(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages_in(&path, pages);
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}

/// Returns the blocks of a page that are configuration files of adit.
fn files_of(page: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```toml" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            files.push(block.join("\n") + "\n");
        }
    }
    // Manifests of Cargo, and examples, which are checked as files.
    let foreign = ["[dependencies", "[patch.", "{{#include "];
    files.retain(|file| !foreign.iter().any(|table| file.contains(table)));
    files
}

#[test]
fn every_file_of_the_documentation_is_valid() {
    let validator = Validator::new();
    let (mut pages, mut files) = (Vec::new(), 0);
    pages_in(&docs(), &mut pages);
    for entry in fs::read_dir(docs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(validator.error_of(&text), None, "{}", path.display());
        }
    }
    for page in pages {
        for text in files_of(&fs::read_to_string(&page).unwrap()) {
            files += 1;
            assert_eq!(validator.error_of(&text), None, "{}", page.display());
        }
    }
    assert!(files >= 25, "{files} files");
}

#[test]
fn a_file_with_every_table_is_valid() {
    let text = r##"
version = 1
include = ["conf.d/*.toml"]

[log]
level = "debug"

[admin]
listen = "admin.sock"
public_host = "vps.example"
store = "users.redb"
store_interval = "1m"

[run]
watch = true
drain = "0s"
dns = "near"

[group.abroad]
kind = "manual"
selected = 2
check = "[2001:db8::1]:443"
members = ["SS+KCP://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==@a:1", ["socks5://b:1", "http://c:1"]]

[dns.far]
server = ["https://dns.example/dns-query", "udp://9.9.9.9"]
via = ["abroad"]
cache = 0
rules = [{ match = ["*.a"], and = "keyword:x", dns = "near" }, { match = "*.b", dns = "reject" }]

[dns.near]
server = "system"

[route.a]
dns = "far"
listen = ["127.0.0.1:1080?udp=false", "tcp://127.0.0.1:53/9.9.9.9:53"]
via = ["abroad"]
rules = [{ match = "*", via = "direct://", resolve = true }]

[route.b]
listen = "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==@:8388"
via = []
relay = [{ server = "192.0.2.7", port = 1, psk = "EBESExQVFhcYGRobHB0eHw==", name = "x" }]
"##;
    assert_eq!(Validator::new().error_of(text), None);
    let plan = Plan::from_toml_with(text, "a.toml", &adit_config::text::MemorySources::default());
    plan.unwrap();
}

#[test]
fn broken_files_are_found_by_the_schema_and_the_parser() {
    let validator = Validator::new();
    assert_eq!(validator.error_of(ROUTE), None);
    let broken = [
        "version = 2\n",
        "include = 1\n",
        "[rout.a]\nlisten = \"1080\"\n",
        "[log]\nlevel = \"loud\"\n",
        "[log]\nlevel = 3\n",
        "[admin]\npublic_host = \"a\"\n",
        "[admin]\nlisten = \"a.sock\"\ntokens = \"token\"\n",
        "[admin]\nlisten = \"a.sock\"\nstore = 1\n",
        "[admin]\nlisten = \"a.sock\"\nstore = \"a\"\nstore_interval = \"soon\"\n",
        "[run]\ndrain = 30\n",
        "[run]\ndrain = \"soon\"\n",
        "[run]\nwatch = \"yes\"\n",
        "[group.g]\nkind = \"fallback\"\nmembers = [\"socks5://a:1\"]\n",
        "[group.g]\nmembers = []\n",
        "[dns.a]\ncache = 1\n",
        "[dns.a]\nserver = []\n",
        "[dns.a]\nserver = \"system\"\ncache = 1048577\n",
        "[dns.a]\nserver = \"system\"\nrules = [{ match = \"*\" }]\n",
        "[run]\ndns = 1\n",
        "[group.\"a b\"]\nmembers = [\"socks5://a:1\"]\n",
        "[route.b]\nvia = \"direct://\"\n",
        "[route.b]\nlisten = []\n",
        "[route.b]\nlisten = \"direct://\"\n",
        "[route.b]\nlisten = \"mixed://127.0.0.1:1\"\nvia = \"htp://a:1\"\n",
        "[route.b]\nlisten = \"mixed://127.0.0.1:1\"\nvia = [[]]\n",
        "[route.b]\nlisten = \"mixed://127.0.0.1:1\"\nvai = \"direct://\"\n",
        "[route.b]\nlisten = \"mixed://127.0.0.1:1\"\nrules = [{ match = [], via = \"direct://\" }]\n",
        "[route.b]\nlisten = \"mixed://127.0.0.1:1\"\nrules = [{ match = \"*\" }]\n",
        "[route.b]\nlisten = \"ss://aes-128-gcm:x@127.0.0.1:1\"\nusers = {}\n",
        "[route.b]\nlisten = \"ss://aes-128-gcm:x@127.0.0.1:1\"\nrelay = [{ server = \"a\", port = 0, psk = \"x\" }]\n",
    ];
    for text in broken {
        let file = format!("{text}{ROUTE}");
        assert!(validator.error_of(&file).is_some(), "{text}");
        assert!(Plan::from_toml(&file, "a.toml").is_err(), "{text}");
    }
}

/// Adds the names of the keys of a table, as the reference writes them.
fn add_paths(table: &Value, prefix: &str, paths: &mut Vec<String>) {
    for (key, value) in table["properties"].as_object().unwrap() {
        let path = format!("{prefix}{key}");
        if value.get("properties").is_some() {
            add_paths(value, &format!("{path}."), paths);
        } else if value["items"].get("properties").is_some() {
            add_paths(&value["items"], &format!("{path}[]."), paths);
            paths.push(path);
        } else if value["additionalProperties"].get("properties").is_some() {
            add_paths(
                &value["additionalProperties"],
                &format!("{path}.NAME."),
                paths,
            );
            paths.push(format!("{path}.NAME"));
        } else {
            paths.push(path);
        }
    }
}

#[test]
fn every_key_is_in_the_reference() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let page = fs::read_to_string(docs().join("reference/config.md")).unwrap();
    let mut paths = Vec::new();
    add_paths(&schema, "", &mut paths);
    assert!(paths.len() >= 20, "{paths:?}");
    for path in paths {
        let row = format!("| `{path}` | ");
        assert!(page.contains(&row), "the reference has no row of `{path}`");
    }
}
