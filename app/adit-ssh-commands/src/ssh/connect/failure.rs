//! Why there is no session, in words that say what to do.

use crate::ssh_config::SshSettings;
use adit_cli::{Code, Failure};
use adit_ssh::ConnectError;
use adit_ssh_proto::SshError;

pub(super) fn of(why: ConnectError, settings: &SshSettings) -> Failure {
    let host = &settings.host_name;
    match why {
        ConnectError::HostKey(refused) => Failure::new(Code::Key, refused.0),
        ConnectError::Auth { methods } => {
            let what = format!("{}@{host} was not let in", settings.user);
            let takes = |name: &str| methods.iter().any(|method| method == name);
            let mut hint = match methods.is_empty() {
                true => "the server takes nothing more".to_owned(),
                false => format!("the server takes: {}", methods.join(", ")),
            };
            if takes("publickey") {
                hint.push_str("\nanother key? -i FILE; which were tried: -v");
            }
            Failure::new(Code::Key, what).hint(hint)
        }
        ConnectError::Ssh(SshError::NoCommon { what, ours, theirs }) => {
            let list = match what.split_whitespace().next() {
                Some("key") => "KexAlgorithms",
                Some("host") => "HostKeyAlgorithms",
                Some("cipher") => "Ciphers",
                Some("MAC") => "MACs",
                _ => "Compression",
            };
            let text = format!("{host} has no {what} in common with us");
            Failure::new(Code::Config, text).hint(format!(
                "we offer {ours}\nit offers {theirs}\n`-o {list}=…` chooses among what is known here"
            ))
        }
        ConnectError::Timeout { .. } | ConnectError::Ended(_) | ConnectError::Io(_) => {
            Failure::new(Code::Network, format!("{host}: {why}"))
        }
        other => Failure::new(Code::Failure, format!("{host}: {other}")),
    }
}
