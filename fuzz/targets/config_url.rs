//! URLs: any text is parsed or refused with a place; a written URL is parsed as the same one.

#![no_main]

use adit_config::{Endpoint, Plan, explain_plan, link};
use adit_fuzz::MinimalSources;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    // A chain: one URL per line.
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    match Plan::from_words_with(&words, &MinimalSources) {
        Ok(plan) => drop(explain_plan(&plan)),
        Err(problems) => {
            assert!(!problems.is_empty());
            problems
                .iter()
                .for_each(|problem| drop(problem.to_string()));
        }
    }
    let Some(url) = words.first() else { return };
    if let Ok(endpoint) = Endpoint::parse(url) {
        let written = endpoint.to_url();
        let again = Endpoint::parse(&written);
        let again = again.unwrap_or_else(|flaw| panic!("written {written:?}: {flaw}"));
        assert_eq!(again.to_url(), written);
    }
    match link::canonical_url(url) {
        Ok(canonical) => assert_eq!(link::canonical_url(&canonical), Ok(canonical)),
        Err(problems) => assert!(!problems.is_empty()),
    }
});
