//! Conditions of a `Match` block.

use super::pattern;

/// A condition, possibly negated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatchCondition {
    negated: bool,
    kind: ConditionKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ConditionKind {
    All,
    /// The second pass, after the host name is known.
    Final,
    Host(String),
    OriginalHost(String),
    User(String),
    LocalUser(String),
    /// Conditions that adit never evaluates, such as `exec`.
    Never,
}

/// Facts that conditions are compared with.
#[derive(Debug)]
pub(super) struct MatchFacts<'a> {
    pub(super) host: &'a str,
    pub(super) original_host: &'a str,
    pub(super) user: &'a str,
    pub(super) local_user: &'a str,
    pub(super) is_final: bool,
}

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatchConditions {
    all: Vec<MatchCondition>,
    /// True if a second pass is required.
    pub(super) wants_final: bool,
    /// The first condition that adit never evaluates.
    pub(super) unsupported: Option<String>,
}

impl MatchConditions {
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut found = Self {
            all: Vec::new(),
            wants_final: false,
            unsupported: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (negated, word) = match word.strip_prefix('!') {
                Some(word) => (true, word),
                None => (false, word.as_str()),
            };
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let lower = name.to_ascii_lowercase();
            let kind = match lower.as_str() {
                "all" => ConditionKind::All,
                "final" => {
                    found.wants_final = true;
                    ConditionKind::Final
                }
                // adit does not canonicalize names.
                "canonical" => ConditionKind::Never,
                "host" | "originalhost" | "user" | "localuser" | "exec" | "localnetwork"
                | "tagged" | "command" | "sessiontype" | "version" => {
                    let value = match value {
                        Some(value) => value.to_owned(),
                        None => words
                            .next()
                            .cloned()
                            .ok_or_else(|| format!("`{name}` has no value"))?,
                    };
                    match lower.as_str() {
                        "host" => ConditionKind::Host(value),
                        "originalhost" => ConditionKind::OriginalHost(value),
                        "user" => ConditionKind::User(value),
                        "localuser" => ConditionKind::LocalUser(value),
                        _ => {
                            found.unsupported.get_or_insert(lower);
                            ConditionKind::Never
                        }
                    }
                }
                _ => return Err(format!("`{name}` is not a condition")),
            };
            found.all.push(MatchCondition { negated, kind });
        }
        // `all` must be alone, or follow one of the two that select the pass.
        let has_all = found.all.iter().any(|one| one.kind == ConditionKind::All);
        let others = found.all.iter().filter(|one| {
            !matches!(
                one.kind,
                ConditionKind::All | ConditionKind::Final | ConditionKind::Never
            )
        });
        if found.all.is_empty() {
            return Err("the condition is missing".to_owned());
        }
        if has_all && (others.count() > 0 || found.all.len() > 2) {
            return Err("`all` must be the only condition".to_owned());
        }
        Ok(found)
    }

    pub(super) fn all_hold(&self, facts: &MatchFacts<'_>) -> bool {
        let list = |patterns: &str, text: &str| pattern::matches_any(patterns.split(','), text);
        self.all.iter().all(|one| {
            let holds = match &one.kind {
                ConditionKind::All => true,
                ConditionKind::Final => facts.is_final,
                ConditionKind::Host(patterns) => list(patterns, facts.host),
                ConditionKind::OriginalHost(patterns) => list(patterns, facts.original_host),
                ConditionKind::User(patterns) => list(patterns, facts.user),
                ConditionKind::LocalUser(patterns) => list(patterns, facts.local_user),
                // Unknown, so neither the condition nor its negation holds.
                ConditionKind::Never => return false,
            };
            holds != one.negated
        })
    }
}
