//! Agent forwarding (`-A`): the local agent for programs on the host.

use std::path::PathBuf;

use crate::ssh_config::ForwardAgent;
use adit_ssh::client::{AgentError, AgentPurpose};
use adit_ssh_proto::connection::OpenFailureReason;
use adit_stream::Buffered;
use tracing::debug;

use super::relay_connection;
use crate::ssh::connect::{ConnectedHost, agent_path, nonempty_variable};
use crate::ssh::platform::connect_socket;

/// Starts to serve agent channels of the host. Returns false if no agent is forwarded.
pub(in crate::ssh) fn offer_local_agent(reached: &ConnectedHost) -> bool {
    let settings = &reached.settings;
    let path = match &settings.forward_agent {
        ForwardAgent::No => None,
        ForwardAgent::Yes => agent_path(settings),
        ForwardAgent::Variable(name) => nonempty_variable(name).map(PathBuf::from),
        ForwardAgent::Socket(path) => Some(path.clone()),
    };
    let (Some(path), true) = (path, reached.trusted) else {
        return false;
    };
    let Ok(mut arrivals) = reached.session.agent_channels() else {
        return false;
    };
    // The task does not hold the session, which ends when its last owner drops it.
    let binding = reached.session.session_binding();
    tokio::spawn(async move {
        while let Some(opening) = arrivals.accept().await {
            let (path, binding) = (path.clone(), binding.clone());
            tokio::spawn(async move {
                match connect_socket(&path).await {
                    Ok(mut agent) => {
                        // The agent does not use keys that are restricted to other hosts. An agent without
                        // support for session binding is used unchanged.
                        match binding
                            .send_to_agent(&mut agent, AgentPurpose::Forwarding)
                            .await
                        {
                            Ok(()) => {}
                            Err(AgentError::Refused) => {
                                debug!("the agent does not support session binding");
                            }
                            Err(why) => {
                                debug!("{}: {why}", path.display());
                                let text = "the agent does not respond";
                                opening.refuse(OpenFailureReason::ConnectFailed, text);
                                return;
                            }
                        }
                        if let Ok(mut channel) = opening.accept() {
                            relay_connection(
                                &mut channel,
                                &mut Buffered::from_tokio(agent),
                                "agent",
                            )
                            .await;
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
