//! `adit run --admin`: the management API of the running servers.

use std::path::Path;
use std::sync::Arc;

use adit_admin::api::{Api, ApiListener, ApiListenerError, Tokens};
use adit_cli::{Failure, FailureCode};
use adit_config::{Plan, Sources, SystemSources};
use adit_engine::Engine;
use adit_wire::Host;

use crate::args;

/// The listener of the API, with the tokens and the host of its requests.
pub(super) struct AdminApi {
    listener: ApiListener,
    tokens: Option<Tokens>,
    public_host: Option<Host>,
}

impl AdminApi {
    /// Opens the listener of the API, if the arguments request one.
    pub(super) async fn open(typed: &args::RunArgs) -> Result<Option<Self>, Failure> {
        let Some(at) = &typed.admin else {
            return Ok(None);
        };
        let tokens = typed.admin_token.as_deref().map(read_tokens).transpose()?;
        let host = typed.public_host.as_deref().map(Host::parse).transpose();
        let public_host =
            host.map_err(|e| Failure::new(FailureCode::Usage, format!("--public-host: {e}")))?;
        let listener = ApiListener::open(at, tokens.is_some())
            .await
            .map_err(to_failure)?;
        Ok(Some(Self {
            listener,
            tokens,
            public_host,
        }))
    }

    /// Creates the API of an engine that runs `plan`.
    pub(super) fn api(&mut self, engine: Arc<Engine>, plan: &Plan) -> Api {
        Api::new(engine, plan, self.tokens.take(), self.public_host.take())
    }

    /// Serves requests. Never returns.
    pub(super) async fn serve(self, api: Arc<Api>) {
        eprintln!("api at {}", self.listener);
        self.listener.serve(api).await;
    }
}

fn read_tokens(written: &str) -> Result<Tokens, Failure> {
    const MAKE: &str = "`adit keygen 2022-blake3-aes-256-gcm > FILE` generates a token";
    let Some(path) = written.strip_prefix('@') else {
        let what = "--admin-token requires @FILE: all users of this machine can read the command \
                    line";
        return Err(Failure::new(FailureCode::Usage, what).with_hint("--admin-token @FILE"));
    };
    let file = SystemSources.read_file(Path::new(path)).map_err(|why| {
        Failure::new(FailureCode::Config, format!("--admin-token @{path}: {why}")).with_hint(MAKE)
    })?;
    if file.readable_by_others {
        eprintln!(
            "warning: all users of this machine can read the token in `{path}`: chmod 600 {path}"
        );
    }
    Tokens::parse(&file.text).map_err(|why| {
        Failure::new(FailureCode::Config, format!("--admin-token @{path}: {why}")).with_hint(MAKE)
    })
}

fn to_failure(why: ApiListenerError) -> Failure {
    let code = match &why {
        ApiListenerError::Exposed(_) | ApiListenerError::NoToken => FailureCode::Config,
        ApiListenerError::Socket { .. } => FailureCode::Network,
    };
    let failure = Failure::new(code, why.to_string());
    match why {
        ApiListenerError::Exposed(_) => failure.with_hint(
                        "use a loopback port, and reach it from other machines through SSH or a web server with TLS",
        ),
        ApiListenerError::NoToken => {
                        failure.with_hint("use --admin-token @FILE, or a path: that socket is for you only")
        }
        ApiListenerError::Socket { .. } => failure,
    }
}
