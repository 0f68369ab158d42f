//! Shortcuts to a plan.

use adit_config::text::MemorySources;
use adit_config::{Plan, Problem};

pub(crate) fn words(words: &[&str]) -> Result<Plan, Vec<Problem>> {
    words_with(words, &MemorySources::default())
}

pub(crate) fn words_with(words: &[&str], sources: &MemorySources) -> Result<Plan, Vec<Problem>> {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    Plan::from_words_with(&words, sources)
}

pub(crate) fn toml(text: &str) -> Result<Plan, Vec<Problem>> {
    Plan::from_toml_with(text, "adit.toml", &MemorySources::default())
}

/// Returns all problems as a user sees them.
pub(crate) fn shown(result: Result<Plan, Vec<Problem>>) -> String {
    let problems = result.expect_err("a plan was made");
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
