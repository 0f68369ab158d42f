//! Scripts that the server runs as one step. They are loaded once, and called by their digests; data is in arguments
//! only.

use std::sync::{Arc, OnceLock};

use redis::{Cmd, Value, cmd};

use super::error::{is_inside_script, lacks_script, to_store_error};
use super::link::Connector;
use super::value::text;
use crate::store::{StoreError, StoreErrorKind};

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Write,
    Restore,
    Usage,
    Salts,
    Activity,
    AddNode,
    PutNode,
    Heartbeat,
}

impl Script {
    const fn source(self) -> &'static str {
        match self {
            Self::Write => include_str!("scripts/write.lua"),
            Self::Restore => include_str!("scripts/restore.lua"),
            Self::Usage => include_str!("scripts/usage.lua"),
            Self::Salts => include_str!("scripts/salts.lua"),
            Self::Activity => include_str!("scripts/activity.lua"),
            Self::AddNode => include_str!("scripts/add_node.lua"),
            Self::PutNode => include_str!("scripts/put_node.lua"),
            Self::Heartbeat => include_str!("scripts/heartbeat.lua"),
        }
    }
}

impl Script {
    /// Returns the commands that the script calls.
    fn commands(self) -> Vec<String> {
        let calls = self.source().split("redis.call('").skip(1);
        let names = calls.filter_map(|call| call.split('\'').next());
        let mut names: Vec<String> = names.map(str::to_lowercase).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Names the commands of the script in an error from inside it: the server does not say which one it refuses.
    fn explain(self, why: StoreError) -> StoreError {
        match why.kind {
            StoreErrorKind::Denied { command: None } if is_inside_script(&why) => StoreError::new(
                why.kind,
                format!(
                    "it lacks one of the commands {}",
                    self.commands().join(", ")
                ),
            ),
            _ => why,
        }
    }
}

/// The digests of scripts, as the server computes them.
#[derive(Debug, Default)]
pub(super) struct Scripts([OnceLock<String>; 8]);

impl Scripts {
    /// Runs a script with these keys and arguments.
    pub(super) async fn run(
        &self,
        connector: &Arc<Connector>,
        script: Script,
        keys: &[String],
        add_arguments: impl Fn(&mut Cmd),
    ) -> Result<Value, StoreError> {
        let slot = self.0.get(script as usize);
        let known = slot.and_then(OnceLock::get).cloned();
        let digest = match known {
            Some(digest) => digest,
            None => self.load(connector, script).await?,
        };
        let call = |digest: &str| {
            let mut command = cmd("EVALSHA");
            command.arg(digest).arg(keys.len()).arg(keys);
            add_arguments(&mut command);
            command
        };
        let answer = connector.try_call(&call(&digest)).await?;
        match answer {
            // The server was restarted or flushed, or another one has taken over.
            Err(why) if lacks_script(&why) => {
                let digest = self.load(connector, script).await?;
                connector.call(&call(&digest)).await
            }
            answer => answer.map_err(|why| to_store_error(&why)),
        }
        .map_err(|why| script.explain(why))
    }

    async fn load(&self, connector: &Arc<Connector>, script: Script) -> Result<String, StoreError> {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(script.source());
        let digest = text(connector.call(&command).await?)?;
        if let Some(slot) = self.0.get(script as usize) {
            // Another call may have been faster, with the same digest.
            let _ = slot.set(digest.clone());
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_script_are_found() {
        assert_eq!(Script::Salts.commands(), ["expire", "sadd"]);
        assert_eq!(Script::AddNode.commands(), ["hset", "hvals", "incr"]);
    }
}
