//! The pages of the documentation, with values in the place of their placeholders.

use std::fs;
use std::path::{Path, PathBuf};

use adit_doc_commands::PageCommand;

/// A key of 128 bits, which also is a password.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// A method with its key, as in a URL.
pub(crate) const SERVER_ID: &str = "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D";

/// The placeholders of the documentation, and their values. The longest come first.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("METHOD:KEY", SERVER_ID),
    ("METHOD:PASSWORD", "aes-128-gcm:secret"),
    ("METHOD:…", "aes-128-gcm:secret"),
    ("2022-blake3-aes-128-gcm:KEY", SERVER_ID),
    ("2022-blake3-aes-128-gcm:…", SERVER_ID),
    (
        "SHA256:…",
        "SHA256:0000000000000000000000000000000000000000000",
    ),
    ("SERVER:PORT", "vps.example:8388"),
    // In base64: `chacha20-ietf-poly1305:secret`.
    ("MTMwNTo…", "MTMwNTpzZWNyZXQ"),
    (
        "ssr://aes-128-cfb:…@…",
        "ssr://aes-128-cfb:secret@vps.example:8388",
    ),
    (
        "ssr://MTI3LjAuMC4x…",
        "ssr://aes-256-ctr:secret@vps.example:8388",
    ),
    ("ssr://…", "ssr://aes-256-ctr:secret@vps.example:8388"),
    ("ss://…@", "ss://aes-128-gcm:secret@"),
    ("ss://…", "ss://aes-128-gcm:secret@vps.example:8388"),
    ("…", "secret"),
];

/// Returns a text with values in the place of the placeholders.
pub(crate) fn fill(text: &str) -> String {
    let fill = |text: String, (name, value): &(&str, &str)| text.replace(name, value);
    PLACEHOLDERS.iter().fold(text.to_owned(), fill)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the text of a page, by its path in the repository.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|why| panic!("{page}: {why}"))
}

/// Returns the paths of all pages with commands.
pub(crate) fn pages() -> Vec<String> {
    adit_doc_commands::pages(&root()).unwrap()
}

/// Returns the commands of a page, by its path in the repository.
pub(crate) fn commands_of(page: &str) -> Vec<PageCommand> {
    let commands = adit_doc_commands::commands_of(&read(page));
    commands.unwrap_or_else(|why| panic!("{page}: {why:#}"))
}

/// Returns the first block of a page with this language that contains these words.
pub(crate) fn block_with(page: &str, language: &str, words: &str) -> String {
    let text = read(page);
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let mut bodies = blocks.filter_map(|rest| rest.split("```").next());
    let found = bodies.find(|body| body.contains(words));
    found
        .unwrap_or_else(|| panic!("{page} has no block with {words}"))
        .to_owned()
}
