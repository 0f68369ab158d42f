//! The agent here, for programs there (`-A`).

use std::path::PathBuf;

use crate::ssh_config::ForwardAgent;
use adit_ssh::client::{AgentError, AgentUse};
use adit_ssh_proto::connection::OpenFailureReason;
use adit_stream::Buffered;
use tokio::net::UnixStream;
use tracing::debug;

use super::carry;
use crate::ssh::connect::{Reached, agent_path, variable};

/// Whether programs there may use an agent; whoever asks is served from now on.
pub(in crate::ssh) fn offer(reached: &Reached) -> bool {
    let settings = &reached.settings;
    let path = match &settings.forward_agent {
        ForwardAgent::No => None,
        ForwardAgent::Yes => agent_path(settings),
        ForwardAgent::Variable(name) => variable(name).map(PathBuf::from),
        ForwardAgent::Socket(path) => Some(path.clone()),
    };
    let (Some(path), true) = (path, reached.trusted) else {
        return false;
    };
    let Ok(mut arrivals) = reached.session.agent_channels() else {
        return false;
    };
    // Without the session: it ends when nothing else holds it.
    let binding = reached.session.session_binding();
    tokio::spawn(async move {
        while let Some(opening) = arrivals.accept().await {
            let (path, binding) = (path.clone(), binding.clone());
            tokio::spawn(async move {
                match UnixStream::connect(&path).await {
                    Ok(mut agent) => {
                        // Keys that are not meant for what the host does stay here. An agent that
                        // knows nothing of that is used as it is.
                        match binding
                            .send_to_agent(&mut agent, AgentUse::Forwarding)
                            .await
                        {
                            Ok(()) => {}
                            Err(AgentError::Refused) => {
                                debug!("the agent does not support session binding")
                            }
                            Err(why) => {
                                debug!("{}: {why}", path.display());
                                let text = "the agent does not respond";
                                opening.refuse(OpenFailureReason::ConnectFailed, text);
                                return;
                            }
                        }
                        if let Ok(mut channel) = opening.accept() {
                            carry(&mut channel, &mut Buffered::from_tokio(agent), "agent").await;
                        }
                    }
                    Err(why) => {
                        debug!("{}: {why}", path.display());
                        opening.refuse(
                            OpenFailureReason::ConnectFailed,
                            "the agent cannot be reached",
                        );
                    }
                }
            });
        }
    });
    true
}
