//! What went wrong, what to do about it, and the exit code.

use std::process::ExitCode;

use adit_config::Problem;
use adit_engine::StartError;

/// The end of a command that did not work.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is wrong: the problems, each with its place.
    Config(Vec<Problem>),
    /// One line, with a hint, and the exit code.
    Plain {
        /// The exit code.
        code: Code,
        /// What went wrong.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// What went wrong, if anything did, and an exit code of another table: that of a program
    /// which was run elsewhere.
    Exit {
        /// The exit code.
        status: u8,
        /// What went wrong.
        why: Option<Box<Self>>,
    },
}

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Anything else
    Failure = 1,
    /// What was typed makes no sense
    Usage = 2,
    /// A configuration is wrong
    Config = 3,
    /// The network, or a port that cannot be opened
    Network = 4,
    /// A key or a setting is another at the server
    Key = 5,
    /// The clocks differ
    Clock = 6,
}

impl Failure {
    /// What went wrong, in one line.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self::Plain {
            code,
            what: what.into(),
            hint: None,
        }
    }

    /// The same with a hint of what to do.
    #[must_use]
    pub fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Plain { code, what, .. } => Self::Plain {
                code,
                what,
                hint: Some(text.into()),
            },
            other => other,
        }
    }

    /// The same with an exit code of another table.
    pub fn with_status(self, status: u8) -> Self {
        match self {
            Self::Exit { .. } => self,
            other => Self::Exit {
                status,
                why: Some(Box::new(other)),
            },
        }
    }

    /// The exit code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Config(_) => Code::Config,
            Self::Plain { code, .. } => *code,
            Self::Exit { .. } => Code::Failure,
        }
    }

    /// Prints it and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Config(problems) => {
                for problem in problems {
                    eprintln!("{problem}");
                }
                ExitCode::from(Code::Config as u8)
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
                    why.report();
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
                let failure = Self::new(Code::Network, what);
                match why.kind() {
                    std::io::ErrorKind::AddrInUse => {
                        failure.hint("another program listens there; choose another port")
                    }
                    // An error that is not the system's own says by itself what is missing.
                    std::io::ErrorKind::PermissionDenied if why.raw_os_error().is_some() => {
                        failure.hint("ports below 1024 need a privilege; choose a port above 1023")
                    }
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
            | StartError::PluginBehind(_) => Self::new(Code::Config, what),
            StartError::Plugin(_) => Self::new(Code::Network, what),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(why: anyhow::Error) -> Self {
        Self::new(Code::Failure, format!("{why:#}"))
    }
}
