//! Failures with hints and exit codes.

use std::process::ExitCode;

use adit_config::Problem;
use adit_engine::{RuleSetError, StartError};

/// The failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// Problems in the configuration, each with its position.
    Config(Vec<Problem>),
    /// A message with an optional hint and an exit code.
    Plain {
        /// The exit code.
        code: FailureCode,
        /// The message.
        what: String,
        /// Hint on what to do.
        hint: Option<String>,
    },
    /// An exit code that is not a [`FailureCode`], such as that of a remote program, and the failure behind it, if any.
    Exit {
        /// The exit code.
        status: u8,
        /// The failure to report.
        why: Option<Box<Self>>,
    },
}

/// The exit codes of adit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// Any other failure.
    Failure = 1,
    /// Invalid arguments.
    Usage = 2,
    /// Invalid configuration.
    Config = 3,
    /// A network failure, or a port that cannot be opened.
    Network = 4,
    /// A key or a setting that differs at the server.
    Key = 5,
    /// A clock difference.
    Clock = 6,
}

impl Failure {
    /// Creates a failure with a message of one line.
    pub fn new(code: FailureCode, what: impl Into<String>) -> Self {
        Self::Plain {
            code,
            what: what.into(),
            hint: None,
        }
    }

    /// Adds a hint on what to do.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Plain { code, what, .. } => Self::Plain {
                code,
                what,
                hint: Some(text.into()),
            },
            other => other,
        }
    }

    /// Sets an exit code that is not a [`FailureCode`].
    pub fn with_status(self, status: u8) -> Self {
        match self {
            Self::Exit { .. } => self,
            other => Self::Exit {
                status,
                why: Some(Box::new(other)),
            },
        }
    }

    /// Returns the exit code.
    pub const fn code(&self) -> FailureCode {
        match self {
            Self::Config(_) => FailureCode::Config,
            Self::Plain { code, .. } => *code,
            Self::Exit { .. } => FailureCode::Failure,
        }
    }

    /// Returns the failure in one line.
    #[must_use]
    pub fn to_log_line(&self) -> String {
        match self {
            Self::Config(problems) => {
                let lines: Vec<String> = problems.iter().map(Problem::to_log_line).collect();
                lines.join("; ")
            }
            Self::Plain { what, hint, .. } => match hint {
                Some(hint) => format!("{what}; {}", hint.lines().collect::<Vec<_>>().join(" ")),
                None => what.clone(),
            },
            Self::Exit { status, why } => match why {
                Some(why) => why.to_log_line(),
                None => format!("exit code {status}"),
            },
        }
    }

    /// Prints the failure and returns the exit code.
    pub fn print_and_exit_code(self) -> ExitCode {
        match self {
            Self::Config(problems) => {
                for problem in problems {
                    eprintln!("{problem}");
                }
                ExitCode::from(FailureCode::Config as u8)
            }
            Self::Plain { code, what, hint } => {
                eprintln!("error: {what}");
                if let Some(hint) = hint {
                    eprintln!("\nhint: {hint}");
                }
                ExitCode::from(code as u8)
            }
            Self::Exit { status, why } => {
                if let Some(why) = why {
                    why.print_and_exit_code();
                }
                ExitCode::from(status)
            }
        }
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Config(problems)
    }
}

impl From<StartError> for Failure {
    fn from(why: StartError) -> Self {
        let what = why.to_string();
        match why {
            StartError::Listen { why, .. } => {
                let failure = Self::new(FailureCode::Network, what);
                match why.kind() {
                    std::io::ErrorKind::AddrInUse => {
                        failure.with_hint("another program listens there; choose another port")
                    }
                    // An error that is not from the system has its own hint.
                    std::io::ErrorKind::PermissionDenied if why.raw_os_error().is_some() => failure
                        .with_hint("ports below 1024 need a privilege; choose a port above 1023"),
                    _ => failure,
                }
            }
            StartError::Key(_)
            | StartError::Users(_)
            | StartError::Relay(_)
            | StartError::Ssr(_)
            | StartError::Obfs(_)
            | StartError::Cipher(_)
            | StartError::Carrier(_)
            | StartError::Ssh(_)
            | StartError::Rule(_)
            | StartError::Dns(_)
            | StartError::LeftOut(_)
            | StartError::NoFleet
            | StartError::PluginBehind(_) => Self::new(FailureCode::Config, what),
            StartError::RuleSets(errors) => {
                let problems = errors.into_iter().map(RuleSetError::into_problem);
                Self::Config(problems.collect())
            }
            StartError::Replays(_) => Self::new(FailureCode::Failure, what),
            StartError::Plugin(_) => Self::new(FailureCode::Network, what),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(why: anyhow::Error) -> Self {
        Self::new(FailureCode::Failure, format!("{why:#}"))
    }
}
