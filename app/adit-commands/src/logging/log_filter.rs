//! The messages that are logged: a level, and levels of single modules.

use adit_config::LogLevel;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The target of the spans of sessions. They are created if any message of adit below `info` is logged, because a
/// message of a module needs the spans that others create.
pub(super) const SESSION_TARGET: &str = "adit::session";

/// A filter of `--log`: `debug,adit_engine::udp=trace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFilter {
    /// The level of everything else; without it, that of `-v` or the file.
    level: Option<LogLevel>,
    modules: Vec<(String, LevelFilter)>,
}

impl ModuleFilter {
    /// Parses a filter.
    ///
    /// # Errors
    ///
    /// Returns a message that names the part which is not a level or `MODULE=LEVEL`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut level, mut modules) = (None, Vec::new());
        for part in text.split(',').map(str::trim) {
            let (module, name) = match part.split_once('=') {
                Some((module, name)) => (Some(module.trim()), name.trim()),
                None => (None, part),
            };
            match module {
                None if level.is_some() => {
                    return Err(format!("`{part}` is a second level without a module"));
                }
                None => match LogLevel::from_name(name) {
                    Some(known) => level = Some(known),
                    None => return Err(unknown_level(name)),
                },
                Some(module) => {
                    if !is_module(module) {
                        return Err(format!(
                            "`{module}` is not a module; one is `adit_engine` or `adit_engine::udp`"
                        ));
                    }
                    let level = match name {
                        "off" => LevelFilter::OFF,
                        _ => {
                            max_level(LogLevel::from_name(name).ok_or_else(|| unknown_level(name))?)
                        }
                    };
                    modules.push((module.to_owned(), level));
                }
            }
        }
        Ok(Self { level, modules })
    }
}

fn unknown_level(name: &str) -> String {
    let all: Vec<&str> = LogLevel::names().collect();
    format!("`{name}` is not a level; levels are {}", all.join(", "))
}

/// Returns true for a path of Rust modules.
fn is_module(text: &str) -> bool {
    text.split("::")
        .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

const fn max_level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace | LogLevel::All => LevelFilter::TRACE,
    }
}

/// Returns the targets of a level: adit's, and the libraries'; and those of single modules.
/// Spans of sessions are created for traces too, whatever is logged.
pub(super) fn targets_of(
    level: LogLevel,
    filter: Option<&ModuleFilter>,
    has_traces: bool,
) -> Targets {
    let level = filter.and_then(|filter| filter.level).unwrap_or(level);
    let adit = max_level(level);
    let others = match level {
        LogLevel::All => LevelFilter::TRACE,
        _ => adit.min(LevelFilter::WARN),
    };
    let modules = filter.map_or(&[][..], |filter| &filter.modules);
    let least = modules.iter().map(|(_, level)| *level).max();
    let least = least.unwrap_or(adit).max(adit);
    let sessions = match has_traces || least >= LevelFilter::DEBUG {
        true => LevelFilter::DEBUG,
        false => LevelFilter::OFF,
    };
    Targets::new()
        .with_default(others)
        .with_target("adit", adit)
        .with_targets(
            modules
                .iter()
                .map(|(module, level)| (module.as_str(), *level)),
        )
        .with_target(SESSION_TARGET, sessions)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn targets(level: LogLevel, filter: &str) -> Targets {
        let filter = (!filter.is_empty()).then(|| ModuleFilter::parse(filter).unwrap());
        targets_of(level, filter.as_ref(), false)
    }

    #[test]
    fn modules_have_levels_of_their_own() {
        let all = targets(
            LogLevel::Info,
            "adit_engine::udp=trace,hyper=debug,adit_admin=off",
        );
        assert!(all.would_enable("adit_engine::serve", &Level::INFO));
        assert!(!all.would_enable("adit_engine::serve", &Level::DEBUG));
        assert!(all.would_enable("adit_engine::udp::association_table", &Level::TRACE));
        assert!(all.would_enable("hyper::proto", &Level::DEBUG));
        assert!(!all.would_enable("tokio", &Level::INFO));
        assert!(!all.would_enable("adit_admin::api", &Level::ERROR));
        let level = targets(LogLevel::Info, "warn");
        assert!(!level.would_enable("adit_engine", &Level::INFO));
    }

    #[test]
    fn sessions_have_spans_only_if_something_below_info_is_logged() {
        let has_spans =
            |level, filter| targets(level, filter).would_enable(SESSION_TARGET, &Level::DEBUG);
        assert!(!has_spans(LogLevel::Info, ""));
        assert!(!has_spans(LogLevel::Info, "adit_engine::udp=info"));
        assert!(has_spans(LogLevel::Debug, ""));
        assert!(has_spans(LogLevel::Info, "adit_engine::udp=debug"));
        let traced = targets_of(LogLevel::Info, None, true);
        assert!(traced.would_enable(SESSION_TARGET, &Level::DEBUG));
        assert!(!traced.would_enable("adit_engine::serve", &Level::DEBUG));
    }

    #[test]
    fn mistakes_name_the_part() {
        for (filter, says) in [
            ("loud", "`loud` is not a level; levels are error, warn"),
            ("info,adit_engine=loud", "`loud` is not a level"),
            ("info,debug", "`debug` is a second level"),
            ("adit engine=info", "`adit engine` is not a module"),
            ("=info", "`` is not a module"),
            ("", "`` is not a level"),
        ] {
            let why = ModuleFilter::parse(filter).unwrap_err();
            assert!(why.contains(says), "{filter}: {why}");
        }
    }
}
