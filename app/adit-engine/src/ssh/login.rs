//! The user and the credentials for the login at a hop's server.

use std::path::PathBuf;
use std::sync::Arc;

use adit_config::{SshHop as Plan, SshKey};
use adit_ssh::client::{Agent, Identity, LocalKey, Login};
use adit_ssh_proto::key::{Certificate, CertifiedKey, KeyError, PrivateKey};
use tracing::debug;

use super::SshPlanError;

/// The user with their keys, and the agent that may have more.
pub(super) struct LoginCredentials {
    login: Login,
    agent: Option<PathBuf>,
}

impl LoginCredentials {
    /// Reads the keys of a plan.
    pub(super) fn new(plan: &Plan) -> Result<Self, SshPlanError> {
        let mut login = Login::new(&plan.user);
        // A wrong password stays wrong, so it is tried once.
        login.prompts = 1;
        for key in &plan.keys {
            let read = key_identities(key).map_err(|why| SshPlanError::Key {
                file: key.file.clone(),
                why,
            })?;
            login.identities.extend(read);
        }
        if let Some(password) = &plan.password {
            login = login.with_password(password.expose());
        }
        Ok(Self {
            login,
            agent: plan.agent.clone(),
        })
    }

    /// Returns the login for one connection: the keys of files, then those that the agent has now.
    pub(super) async fn current_login(&self) -> Login {
        let mut login = self.login.clone();
        if let Some(path) = &self.agent {
            let asked = async { Agent::connect(path).await?.keys().await };
            match asked.await {
                Ok(keys) => {
                    let added = keys
                        .into_iter()
                        .map(|key| Arc::new(key) as Arc<dyn Identity>);
                    login.identities.extend(added);
                }
                // Without the agent, the server's refusal tells what is missing.
                Err(why) => debug!("{}: {why}", path.display()),
            }
        }
        login
    }
}

/// Returns the identity of a key: its certificate if there is one, otherwise the key itself.
fn key_identities(key: &SshKey) -> Result<Vec<Arc<dyn Identity>>, KeyError> {
    let passphrase = key.passphrase.as_ref().map(|one| one.expose().as_bytes());
    let read = || PrivateKey::from_text(key.text.expose(), passphrase);
    let mut found: Vec<Arc<dyn Identity>> = Vec::new();
    if let Some(text) = &key.certificate {
        let (certificate, _) = Certificate::from_line(text.trim())?;
        let certified = CertifiedKey::new(read()?, Some(certificate))?;
        found.push(Arc::new(LocalKey::with_certificate(certified)));
    }
    found.push(Arc::new(LocalKey::new(read()?)));
    Ok(found)
}
