//! `adit run --admin`: the management API beside the servers it manages.

use std::path::Path;
use std::sync::Arc;

use adit_admin::api::{Api, Door, DoorError, Tokens};
use adit_cli::{Code, Failure};
use adit_config::{Plan, Sources, SystemSources};
use adit_engine::Engine;
use adit_wire::Host;

use crate::args;

/// An open door, and what its requests are judged by.
pub(super) struct Admin {
    door: Door,
    tokens: Option<Tokens>,
    public_host: Option<Host>,
}

impl Admin {
    /// Opens the door, if one was asked for.
    pub(super) async fn open(typed: &args::Run) -> Result<Option<Self>, Failure> {
        let Some(at) = &typed.admin else {
            return Ok(None);
        };
        let tokens = typed.admin_token.as_deref().map(tokens).transpose()?;
        let host = typed.public_host.as_deref().map(Host::parse).transpose();
        let public_host =
            host.map_err(|e| Failure::new(Code::Usage, format!("--public-host: {e}")))?;
        let door = Door::open(at, tokens.is_some()).await.map_err(refused)?;
        Ok(Some(Self {
            door,
            tokens,
            public_host,
        }))
    }

    /// Answers for ever.
    pub(super) async fn serve(self, engine: Arc<Engine>, plan: &Plan) {
        eprintln!("api at {}", self.door);
        let api = Api::new(engine, plan, self.tokens, self.public_host);
        self.door.serve(Arc::new(api)).await;
    }
}

fn tokens(written: &str) -> Result<Tokens, Failure> {
    const MAKE: &str = "adit keygen 2022-blake3-aes-256-gcm > FILE makes a good one";
    let Some(path) = written.strip_prefix('@') else {
        let what = "--admin-token names a file: every user of this machine can read what stands \
                    on the command line";
        return Err(Failure::new(Code::Usage, what).hint("--admin-token @FILE"));
    };
    let file = SystemSources.read_file(Path::new(path)).map_err(|why| {
        Failure::new(Code::Config, format!("--admin-token @{path}: {why}")).hint(MAKE)
    })?;
    if file.readable_by_others {
        eprintln!(
            "warning: every user of this machine can read the token in `{path}`: chmod 600 {path}"
        );
    }
    Tokens::read(&file.text).map_err(|why| {
        Failure::new(Code::Config, format!("--admin-token @{path}: {why}")).hint(MAKE)
    })
}

fn refused(why: DoorError) -> Failure {
    let code = match &why {
        DoorError::Exposed(_) | DoorError::NoToken => Code::Config,
        DoorError::Socket { .. } => Code::Network,
    };
    let failure = Failure::new(code, why.to_string());
    match why {
        DoorError::Exposed(_) => failure.hint(
            "take a port of this machine, and lead others to it through SSH or a web server with TLS",
        ),
        DoorError::NoToken => {
            failure.hint("--admin-token @FILE; or a path, which makes a socket for you alone")
        }
        DoorError::Socket { .. } => failure,
    }
}
