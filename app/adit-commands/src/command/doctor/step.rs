//! Steps and their findings, as text and as JSON.

use std::io::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// One check and its finding.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// The finding, in one sentence.
    pub(super) what: String,
    /// A hint on what to do.
    pub(super) advice: Option<String>,
    /// Additional values of the JSON object.
    pub(super) figures: Vec<(&'static str, Value)>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// It works, but only for a limited time or in part.
    Warning,
    Failed,
    /// It was not checked.
    Skipped,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Step {
    pub(super) fn new(name: &'static str, state: State, what: impl Into<String>) -> Self {
        Self {
            name,
            state,
            what: what.into(),
            advice: None,
            figures: Vec::new(),
        }
    }

    pub(super) fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }

    pub(super) fn figure(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.push((name, value.into()));
        self
    }

    pub(super) fn took(self, name: &'static str, time: Duration) -> Self {
        self.figure(name, (time.as_secs_f64() * 1e4).round() / 10.0)
    }

    /// Formats the step as one or two lines.
    fn shown(&self) -> String {
        let line = format!("{:<8} {:<10} {}", self.state.word(), self.name, self.what);
        match &self.advice {
            None => line,
            Some(advice) => format!("{line}\n{:<19} → {advice}", ""),
        }
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("step".to_owned(), json!(self.name));
        object.insert("state".to_owned(), json!(self.state.word()));
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
pub(super) struct Chart {
    endpoint: String,
    steps: Vec<Step>,
    json: bool,
}

impl Chart {
    /// Creates an empty list. `endpoint` must not contain a secret. JSON is written at the end, text
    /// line by line.
    pub(super) const fn new(endpoint: String, json: bool) -> Self {
        Self {
            endpoint,
            steps: Vec::new(),
            json,
        }
    }

    pub(super) fn add(&mut self, step: Step) {
        if !self.json {
            say(&step.shown());
        }
        self.steps.push(step);
    }

    /// Writes the JSON object, if requested, with the exit code.
    pub(super) fn close(&self, exit: u8) {
        if self.json {
            let steps: Vec<Value> = self.steps.iter().map(Step::json).collect();
            let all = json!({ "endpoint": self.endpoint, "exit": exit, "steps": steps });
            say(&all.to_string());
        }
    }
}

/// Prints a line, and ignores a closed standard output.
fn say(line: &str) {
    let _ = writeln!(adit_cli::out::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shown_with_its_advice() {
        let step = Step::new("connect", State::Failed, "refused");
        assert_eq!(step.shown(), "failed   connect    refused");
        let step = step
            .advice("start it")
            .took("ms", Duration::from_micros(1260));
        assert_eq!(
            step.shown(),
            "failed   connect    refused\n                    → start it"
        );
        assert_eq!(
            step.json(),
            json!({"step": "connect", "state": "failed", "what": "refused", "advice": "start it",
                "ms": 1.3})
        );
    }
}
