//! Configuration files: any text is a plan, or a list of problems with places.

#![no_main]

use adit_config::{Plan, explain_plan};
use adit_fuzz::MinimalSources;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Plan::from_toml_with(text, "adit.toml", &MinimalSources) {
        Ok(plan) => drop(explain_plan(&plan)),
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                let shown = problem.to_string();
                assert!(!shown.is_empty());
                let lines = text.lines().count().max(1);
                assert!(
                    problem.place.is_none_or(|place| place.line <= lines + 1),
                    "{shown}"
                );
            }
        }
    }
});
