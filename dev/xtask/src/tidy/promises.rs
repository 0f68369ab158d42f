//! Checks that the tests exist that the page of promises names as proof.

use super::code_text::has_word;
use crate::source_files::SourceFile;

/// The page, and the folder of the tests that it names by their modules.
const PAGE: &str = "docs/reference/promises.md";
const TESTS: &str = "app/adit/tests/it/";

/// Returns the tests of the page that are in no file of their module.
pub(super) fn find_faults(sources: &[SourceFile]) -> Vec<String> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        // Every second part is between backticks.
        let quoted = line.split('`').skip(1).step_by(2);
        for name in quoted.filter(|text| text.contains("::") && !text.contains([' ', '/'])) {
            let (module, test) = (name.split("::").next(), name.rsplit("::").next());
            let (module, test) = (module.unwrap_or_default(), test.unwrap_or_default());
            let mut files = sources.iter().filter(|source| {
                let inside = source.path.strip_prefix(TESTS);
                let inside = inside.and_then(|path| path.strip_prefix(module));
                inside.is_some_and(|rest| rest.starts_with(['/', '.']))
            });
            if !files.any(|file| has_word(&file.text, test)) {
                faults.push(format!(
                    "{PAGE}:{}: the test `{name}` does not exist",
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

    #[test]
    fn a_test_that_is_gone_is_told() {
        let source = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let tree = [
            source(
                PAGE,
                "| a | `kcp::one`, `kcp::part::two` |\n| b | `cargo test a::b`, `kcp::on` |\n",
            ),
            source("app/adit/tests/it/kcp.rs", "fn one() {}"),
            source("app/adit/tests/it/kcp/part.rs", "fn two() {}"),
            source("app/adit/tests/it/kcp_link.rs", "fn on() {}"),
        ];
        assert_eq!(
            find_faults(&tree),
            [format!("{PAGE}:2: the test `kcp::on` does not exist")]
        );
    }
}
