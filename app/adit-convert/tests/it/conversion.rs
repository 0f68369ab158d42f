//! Short texts of other formats, and their conversions.

use adit_config::text::MemorySources;
use adit_config::{Plan, Problem};
use adit_convert::{ConvertOptions, Converted, Role};

const NAME: &str = "etc/c.json";

pub(crate) fn convert(text: &str) -> Converted {
    convert_as(text, None, &MemorySources::default())
        .unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

pub(crate) fn convert_as(
    text: &str,
    role: Option<Role>,
    folder: &MemorySources,
) -> Result<Converted, Vec<Problem>> {
    let wish = ConvertOptions {
        role,
        ..ConvertOptions::default()
    };
    adit_convert::convert(text, NAME, &wish, folder)
}

/// The TOML without its comments.
pub(crate) fn body(converted: &Converted) -> String {
    let head = format!("# From `{NAME}` ({}).", converted.format);
    let mut lines = converted.toml.lines();
    assert_eq!(lines.next(), Some(head.as_str()));
    let body = lines.skip_while(|line| line.starts_with("# note: "));
    let body: Vec<&str> = body.collect();
    assert_eq!(body[0], "", "{body:?}");
    body[1..].join("\n") + "\n"
}

pub(crate) fn notes(converted: &Converted) -> Vec<String> {
    converted.notes.iter().map(ToString::to_string).collect()
}

pub(crate) fn plan(converted: &Converted) -> Plan {
    plan_with(converted, &MemorySources::default())
}

pub(crate) fn plan_with(converted: &Converted, folder: &MemorySources) -> Plan {
    Plan::from_toml_with(&converted.toml, "c.toml", folder)
        .unwrap_or_else(|problems| panic!("{}\n{problems:?}", &*converted.toml))
}

pub(crate) fn problems(result: Result<Converted, Vec<Problem>>) -> String {
    let problems = result.expect_err("it was converted");
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
