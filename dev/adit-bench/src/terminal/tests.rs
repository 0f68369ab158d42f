//! The committed picture shows the messages of the program, without the key.

use super::picture::{draw_picture, parse_picture};
use super::*;
use crate::locations::workspace_root;

/// The files of the shown messages.
const SOURCES: [&str; 4] = ["server.rs", "client.rs", "run.rs", "plan_keys.rs"];

fn committed_windows() -> Vec<TerminalWindow> {
    parse_picture(&fs::read_to_string(workspace_root().join("docs").join(PICTURE_FILE)).unwrap())
}

/// Returns the string literals of a source.
fn string_literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n").replace("'\"'", "''");
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '"' {
            continue;
        }
        let mut text = String::new();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => break,
                '\\' => match letters.next() {
                    Some('n') => text.push('\n'),
                    // The literal continues on the next line.
                    Some('\n') => while letters.next_if(|c| c.is_whitespace()).is_some() {},
                    Some(other) => text.push(other),
                    None => {}
                },
                other => text.push(other),
            }
        }
        found.push(text);
    }
    found
}

/// Returns the fixed parts of a format, between its arguments.
fn fixed_parts(format: &str) -> Vec<&str> {
    let mut parts = format.split('{');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    std::iter::once(first).chain(rest).collect()
}

/// True if the format prints this line with some arguments.
fn format_prints(format: &str, line: &str) -> bool {
    let parts = fixed_parts(format);
    let letters: usize = parts.iter().map(|part| part.chars().count()).sum();
    let Some(mut rest) = parts.first().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    if letters < 5 {
        return false;
    }
    for part in &parts[1..] {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    // An argument at the end takes the rest.
    rest.is_empty() || (parts.len() > 1 && parts.last() == Some(&""))
}

fn message_formats() -> Vec<String> {
    let folder = workspace_root().join("app/adit-commands/src/command");
    let texts = SOURCES.map(|name| fs::read_to_string(folder.join(name)).unwrap());
    texts
        .iter()
        .flat_map(|text| string_literals(text))
        .collect()
}

/// `cargo xtask bench --terminal` takes the picture again.
#[test]
fn the_picture_shows_what_the_program_prints() {
    let formats = message_formats();
    let all = formats.join("\n");
    let windows = committed_windows();
    assert_eq!(windows.len(), 2);
    for window in &windows {
        let printed: Vec<&TerminalLine> =
            window.lines.iter().filter(|line| !line.is_typed).collect();
        assert!(printed.len() >= 3, "{window:?}");
        for line in printed {
            let by = formats
                .iter()
                .find(|format| format_prints(format, &line.text));
            assert!(by.is_some(), "no message prints `{}`", line.text);
            // The arguments that are words come from another message.
            let words = line.text.split([' ', ',', ';', '(', ')']);
            let plain = |word: &&str| {
                word.len() > 3 && word.chars().all(|c| c.is_ascii_alphabetic() || c == ':')
            };
            for word in words.filter(plain) {
                assert!(all.contains(word), "`{word}` of `{}`", line.text);
            }
        }
    }
    for message in ["method ", "Client: ", "listening on ", "ok: "] {
        let lines = windows.iter().flat_map(|window| &window.lines);
        let shown = lines.filter(|line| line.text.starts_with(message)).count();
        assert!(shown > 0, "{message}");
    }
}

#[test]
fn the_key_of_the_picture_is_a_placeholder() {
    let windows = committed_windows();
    let lines: Vec<&str> = windows
        .iter()
        .flat_map(|window| window.lines.iter().map(|line| &*line.text))
        .collect();
    let urls = lines.iter().flat_map(|line| line.split("ss://").skip(1));
    let urls: Vec<&str> = urls.collect();
    assert!(!urls.is_empty(), "{lines:?}");
    for url in urls {
        let secret = url.split(':').nth(1).unwrap().split('@').next().unwrap();
        assert_eq!(secret, KEY_PLACEHOLDER, "{url}");
        assert!(url.contains(&format!("@{HOST}:{SERVER_PORT}")), "{url}");
    }
    for line in &lines {
        let id = line.split("key-id").nth(1).map(str::trim_start);
        assert!(
            id.is_none_or(|id| id.starts_with(KEY_ID_PLACEHOLDER)),
            "{line}"
        );
        assert!(!line.contains("/tmp") && !line.contains("/home"), "{line}");
    }
}

#[test]
fn a_picture_comes_back_from_its_lines() {
    let windows = committed_windows();
    let svg = fs::read_to_string(workspace_root().join("docs").join(PICTURE_FILE)).unwrap();
    assert!(
        draw_picture(&windows) == svg,
        "`draw` returns something else for its lines"
    );
    let long = "x".repeat(200) + " <&\"> [key]";
    let lines = vec![
        TerminalLine::new_typed(long.clone()),
        TerminalLine::new_printed(String::new()),
    ];
    let title = "a & b".to_owned();
    let windows = vec![TerminalWindow { title, lines }];
    let svg = draw_picture(&windows);
    assert_eq!(parse_picture(&svg), windows);
    assert_eq!(svg.matches("class=\"rest\"").count(), 2);
    assert!(svg.contains("@media (prefers-color-scheme:dark)"));
    assert!(svg.contains("<tspan class=\"place\">[key]</tspan>"));
    assert!(!svg.contains("<&"));
}

#[test]
fn formats_print_their_lines_and_no_others() {
    let source = "// \"no\"\nprintln!(\"ok: {server} accepts \\\n   us: {}\", \"a\\\"b\");";
    assert_eq!(
        string_literals(source),
        ["ok: {server} accepts us: {}", "a\"b"]
    );
    let format = "ok: {server} accepts us: {}";
    assert!(format_prints(format, "ok: a:1 accepts us: b"));
    assert!(!format_prints(format, "ok: a:1 accepted us: b"));
    assert!(!format_prints(format, "note: ok: a accepts us: b"));
    assert!(!format_prints("{}: {}", "a: b"));
    assert!(!format_prints("listens", "listens on"));
}

#[test]
fn placeholders_replace_private_text() {
    let said = "key-id   D53E\nurl      ss://2022-blake3-aes-128-gcm:abc%3D@vps.example:81\n";
    assert_eq!(
        text_between(said, "url      ss://", ':', '@'),
        Some("abc%3D")
    );
    assert_eq!(text_between(said, "key-id ", ' ', '\n'), Some("D53E"));
    let places =
        [("abc%3D", KEY_PLACEHOLDER), (":81", ":8388")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(
        redact_text("ss://m:abc%3D@vps.example:81", &places),
        "ss://m:[key]@vps.example:8388"
    );
}

#[test]
fn the_readme_shows_a_chart_and_the_picture_on_few_lines() {
    let readme = fs::read_to_string(workspace_root().join("README.md")).unwrap();
    for image in ["(docs/benchmarks/ss-tcp.svg)", "(docs/terminal.svg)"] {
        assert_eq!(readme.matches(image).count(), 1, "{image}");
    }
    let lines = readme.lines().count();
    assert!(lines < 150, "{lines} lines");
    // The chart's words, with its figures, are those of the page.
    let page = fs::read_to_string(workspace_root().join("docs/benchmarks/ss-tcp.md")).unwrap();
    let words = |text: &str, file: &str| {
        let before = text.split_once(file).unwrap().0;
        before.rsplit_once("![").unwrap().1.to_owned()
    };
    assert_eq!(
        words(&readme, "](docs/benchmarks/ss-tcp.svg)"),
        words(&page, "](ss-tcp.svg)")
    );
}
