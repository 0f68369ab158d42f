//! Failures to establish a session, with hints for the user.

use crate::ssh_config::SshSettings;
use adit_cli::{Failure, FailureCode};
use adit_ssh::ConnectError;
use adit_ssh_proto::SshError;

/// Converts a connect error to a failure with a hint.
pub(super) fn from_connect_error(why: ConnectError, settings: &SshSettings) -> Failure {
    let host = &settings.host_name;
    match why {
        ConnectError::HostKey(refused) => Failure::new(FailureCode::Key, refused.0),
        ConnectError::Auth { methods } => {
            let what = format!("{}@{host}: permission denied", settings.user);
            let takes = |name: &str| methods.iter().any(|method| method == name);
            let mut hint = match methods.is_empty() {
                true => "the server accepts no further method".to_owned(),
                false => format!("the server accepts: {}", methods.join(", ")),
            };
            if takes("publickey") {
                hint.push_str("\nuse -i FILE for another key; -v shows which keys were tried");
            }
            Failure::new(FailureCode::Key, what).with_hint(hint)
        }
        ConnectError::Ssh(SshError::NoCommon { what, ours, theirs }) => {
            let list = match what.split_whitespace().next() {
                Some("key") => "KexAlgorithms",
                Some("host") => "HostKeyAlgorithms",
                Some("cipher") => "Ciphers",
                Some("MAC") => "MACs",
                _ => "Compression",
            };
            let text = format!("{host} has no {what} in common with adit");
            Failure::new(FailureCode::Config, text).with_hint(format!(
                "adit offers {ours}\nthe server offers {theirs}\nselect others with `-o {list}=…`"
            ))
        }
        ConnectError::Timeout { .. } | ConnectError::Ended(_) | ConnectError::Io(_) => {
            Failure::new(FailureCode::Network, format!("{host}: {why}"))
        }
        other => Failure::new(FailureCode::Failure, format!("{host}: {other}")),
    }
}
