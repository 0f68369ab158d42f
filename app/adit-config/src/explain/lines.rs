//! Lines of a drawn plan.

use core::fmt::Write;

use crate::plan::RuleCondition;

/// Appends a line.
pub(super) fn write_line(text: &mut String, content: &str) {
    // A text in memory accepts everything.
    let _ = writeln!(text, "{content}");
}

/// Returns the conditions of a rule: any of `matches`, and any of `and` if there are some.
pub(super) fn conditions_text(matches: &[RuleCondition], and: &[RuleCondition]) -> String {
    let join = |conditions: &[RuleCondition]| {
        let texts: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let matches = join(matches);
    if and.is_empty() {
        return matches;
    }
    format!("({matches}) and ({})", join(and))
}
