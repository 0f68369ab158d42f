//! Steps and their findings, as text and as JSON.

use std::io::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::json;

/// One check and its finding.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CheckResult {
    pub(super) name: &'static str,
    pub(super) state: CheckState,
    /// The finding, in one sentence.
    pub(super) what: String,
    /// A hint on what to do.
    pub(super) advice: Option<String>,
    /// Additional values of the JSON object.
    pub(super) figures: Vec<(&'static str, Value)>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckState {
    Ok,
    /// It works, but only for a limited time or in part.
    Warning,
    Failed,
    /// It was not checked.
    Skipped,
}

impl CheckState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl CheckResult {
    pub(super) fn new(name: &'static str, state: CheckState, what: impl Into<String>) -> Self {
        Self {
            name,
            state,
            what: what.into(),
            advice: None,
            figures: Vec::new(),
        }
    }

    pub(super) fn with_advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }

    pub(super) fn with_figure(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.push((name, value.into()));
        self
    }

    pub(super) fn with_duration(self, name: &'static str, time: Duration) -> Self {
        self.with_figure(name, (time.as_secs_f64() * 1e4).round() / 10.0)
    }

    /// Formats the step as one or two lines.
    fn to_text(&self) -> String {
        let line = format!("{:<8} {:<10} {}", self.state.as_str(), self.name, self.what);
        match &self.advice {
            None => line,
            Some(advice) => format!("{line}\n{:<19} → {advice}", ""),
        }
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("step".to_owned(), json!(self.name));
        object.insert("state".to_owned(), json!(self.state.as_str()));
        object.insert("what".to_owned(), json!(self.what));
        if let Some(advice) = &self.advice {
            object.insert("advice".to_owned(), json!(advice));
        }
        for (name, value) in &self.figures {
            object.insert((*name).to_owned(), value.clone());
        }
        Value::Object(object)
    }
}

/// The list of steps so far.
#[derive(Debug)]
pub(super) struct DoctorReport {
    endpoint: String,
    steps: Vec<CheckResult>,
    json: bool,
}

impl DoctorReport {
    /// Creates an empty list. `endpoint` must not contain a secret. JSON is written at the end, text
    /// line by line.
    pub(super) const fn new(endpoint: String, json: bool) -> Self {
        Self {
            endpoint,
            steps: Vec::new(),
            json,
        }
    }

    pub(super) fn add_step(&mut self, step: CheckResult) {
        if !self.json {
            print_line(&step.to_text());
        }
        self.steps.push(step);
    }

    /// Writes the JSON object, if requested, with the exit code.
    pub(super) fn finish(&self, exit: u8) {
        if self.json {
            let steps: Vec<Value> = self.steps.iter().map(CheckResult::to_json).collect();
            let all = json!({ "endpoint": self.endpoint, "exitCode": exit, "steps": steps });
            json::print_result("doctor", &all);
        }
    }
}

/// Prints a line, and ignores a closed standard output.
fn print_line(line: &str) {
    let _ = writeln!(adit_cli::out::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_with_its_advice() {
        let step = CheckResult::new("connect", CheckState::Failed, "refused");
        assert_eq!(step.to_text(), "failed   connect    refused");
        let step = step
            .with_advice("start it")
            .with_duration("ms", Duration::from_micros(1260));
        assert_eq!(
            step.to_text(),
            "failed   connect    refused\n                    → start it"
        );
        assert_eq!(
            step.to_json(),
            json!({"step": "connect", "state": "failed", "what": "refused", "advice": "start it",
                "ms": 1.3})
        );
    }
}
