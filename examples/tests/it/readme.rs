//! The README lists every program; each is short and prints its usage.

use std::path::Path;

use crate::support::{PROGRAMS, run_with};

/// Maximum number of lines of a program, without blank lines and comments.
const MAX_LINES: usize = 60;

#[test]
fn every_program_is_listed_and_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let files = std::fs::read_dir(folder.join("src/bin")).unwrap();
    assert_eq!(files.count(), PROGRAMS.len(), "a program is not tested");
    for (name, _) in PROGRAMS {
        let path = format!("src/bin/{name}.rs");
        assert!(readme.contains(&format!("]({path})")), "{name}");
        assert!(readme.contains(&format!("--bin {name} -- ")), "{name}");
        let text = std::fs::read_to_string(folder.join(&path)).unwrap();
        let code = text.lines().map(str::trim);
        let lines = code.filter(|line| !line.is_empty() && !line.starts_with("//"));
        let count = lines.count();
        assert!(count <= MAX_LINES, "{name} has {count} lines");
    }
}

#[tokio::test]
async fn wrong_arguments_are_answered_with_the_usage() {
    for (name, _) in PROGRAMS {
        for count in 0..9 {
            let args = vec!["\u{fffd}"; count];
            let outcome = run_with(name, &args, "").await;
            assert_eq!(
                (outcome.status, &*outcome.stdout),
                (1, ""),
                "{name} {count}"
            );
            let usage = format!("usage: {name} ");
            assert!(outcome.stderr.contains(&usage), "{count}: {outcome:?}");
        }
    }
}
