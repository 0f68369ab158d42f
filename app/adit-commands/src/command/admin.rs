//! `adit run --admin`, and `[admin]` of a file: the management API of the running servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adit_admin::api::{Api, ApiListener, ApiListenerControl, ApiListenerError, Tokens};
use adit_admin::audit_log::AuditLog;
use adit_admin::subscription::TrustedRoots;
use adit_admin::user_store::{UserStore, UserStoreControl, UserStoreError};
use adit_admin::webhook::{self, WebhookContext, WebhookHub, WebhookTiming};
use adit_cli::{Failure, FailureCode};
use adit_config::{AdminSettings, FileText, Plan, Sources, StoreSettings, SystemSources};
use adit_engine::Engine;
use adit_net::names::own_host_name;
use adit_wire::Host;
use tokio::task::spawn_blocking;
use tracing::warn;
use zeroize::Zeroizing;

use super::upgrade::InheritedApi;
use crate::args;

/// The listener of the API, with the tokens and the host of its requests.
pub(super) struct AdminApi {
    listener: ApiListener,
    is_continued: bool,
    tokens: Option<Tokens>,
    public_host: Option<Host>,
    metrics_users: bool,
    audit: Option<AuditLog>,
}

impl AdminApi {
    /// Opens the listener of the API, if the arguments or the file request one. The arguments take precedence.
    pub(super) async fn open(
        typed: &args::RunArgs,
        file: Option<&AdminSettings>,
        inherited: Option<InheritedApi>,
    ) -> Result<Option<Self>, Failure> {
        let at = typed.admin.as_deref();
        let Some(at) = at.or_else(|| file.map(|file| file.listen.as_str())) else {
            // Metrics are exported over OTLP too.
            let users_alone = typed.metrics_users && typed.otlp.is_none();
            return match (&typed.admin_token, &typed.public_host) {
                (None, None) if users_alone => Err(without_listener("--metrics-users")),
                (None, None) => Ok(None),
                (Some(_), _) => Err(without_listener("--admin-token")),
                (None, Some(_)) => Err(without_listener("--public-host")),
            };
        };
        let tokens = match (
            &typed.admin_token,
            file.and_then(|file| file.tokens.as_deref()),
        ) {
            (Some(written), _) => Some(read_typed_tokens(written)?),
            (None, Some(path)) => Some(read_tokens_of_file(path)?),
            (None, None) => None,
        };
        let public_host = match &typed.public_host {
            Some(host) => Some(
                Host::parse(host)
                    .map_err(|e| Failure::new(FailureCode::Usage, format!("--public-host: {e}")))?,
            ),
            None => file.and_then(|file| file.public_host.clone()),
        };
        let audit = match file.and_then(|file| file.audit.clone()) {
            Some(path) => Some(open_audit_log(path).await?),
            None => None,
        };
        let mut continued = None;
        if let Some(inherited) = inherited {
            let listener = inherited.continue_at(at, tokens.is_some());
            continued = listener.await.map_err(to_failure)?;
        }
        let is_continued = continued.is_some();
        let listener = match continued {
            Some(listener) => listener,
            None => ApiListener::open(at, tokens.is_some())
                .await
                .map_err(to_failure)?,
        };
        Ok(Some(Self {
            listener,
            is_continued,
            tokens,
            public_host,
            metrics_users: typed.metrics_users || file.is_some_and(|file| file.metrics_users),
            audit,
        }))
    }

    /// Returns true if the listener is that of the process which this one succeeds.
    pub(super) const fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Returns the means to hand over the listener.
    pub(super) fn control(&self) -> ApiListenerControl {
        self.listener.control()
    }

    /// Returns the address of the listener.
    pub(super) fn address(&self) -> String {
        self.listener.to_string()
    }

    /// Creates the API of an engine that runs `plan`.
    pub(super) fn api(&mut self, engine: Arc<Engine>, plan: &Plan) -> Api {
        let mut api = Api::new(engine, plan, self.tokens.take(), self.public_host.take());
        if let Some(audit) = self.audit.take() {
            api = api.with_audit_log(audit);
        }
        if self.metrics_users {
            api.with_users_in_metrics()
        } else {
            api
        }
    }

    /// Serves requests. Returns once a successor has the listener and all connections have ended.
    pub(super) async fn serve(self, api: Arc<Api>) {
        eprintln!("api at {}", self.listener);
        self.listener.serve(api).await;
    }
}

/// The open store of the limits and the usage of users.
pub(super) struct OpenStore {
    store: UserStore,
    settings: StoreSettings,
}

impl OpenStore {
    /// Opens the store, if the file has one.
    pub(super) async fn open(file: Option<&AdminSettings>) -> Result<Option<Self>, Failure> {
        let Some(settings) = file.and_then(|file| file.store.clone()) else {
            return Ok(None);
        };
        let opening = spawn_blocking(move || {
            let opened = UserStore::open(&settings.path);
            let store = opened.map_err(|why| store_failure(&settings.path, &why))?;
            Ok(Self { store, settings })
        });
        match opening.await {
            Ok(opened) => opened.map(Some),
            Err(why) => Err(Failure::new(FailureCode::Failure, why.to_string())),
        }
    }

    /// Applies the limits and the usage in the store to an engine.
    pub(super) fn restore(&mut self, engine: &Engine) {
        self.store.restore(engine.user_registry());
    }

    /// Stores what changes in an engine from now on.
    pub(super) fn follow(self, engine: &Engine) -> UserStoreControl {
        let registry = engine.user_registry().clone();
        self.store.follow(registry, self.settings.interval)
    }
}

/// Starts the receivers of events of a configuration file, with the events that were not delivered before.
pub(super) fn start_webhooks(
    plan: &Plan,
    config: &Path,
    engine: &Engine,
) -> Result<WebhookHub, Failure> {
    let folder = adit_cli::state_folder(None).ok();
    let folder = folder.map(|state| WebhookContext::folder_in(&state, config));
    if folder.is_none() && !plan.webhooks.is_empty() {
        warn!(
            "there is no state folder: events for `[[webhook]]` are lost at the end of the process"
        );
    }
    let hub = WebhookHub::new(WebhookContext {
        node: own_host_name().to_owned(),
        folder,
        names: engine.names(),
        roots: TrustedRoots::Machine,
        timing: WebhookTiming::default(),
    });
    set_webhooks(&hub, plan).map_err(webhook_failure)?;
    hub.watch_users(engine.user_registry().clone());
    Ok(hub)
}

/// Sets the receivers of a plan.
pub(super) fn set_webhooks(hub: &WebhookHub, plan: &Plan) -> Result<(), String> {
    let set = hub.set_receivers(&plan.webhooks);
    set.map_err(|why| why.to_string())
}

/// Checks the receivers of a plan.
pub(super) fn check_webhooks(plan: &Plan) -> Result<(), String> {
    webhook::check(&plan.webhooks).map_err(|why| why.to_string())
}

/// Returns the failure of settings that [`check_webhooks`] refuses.
pub(super) fn webhook_failure(why: String) -> Failure {
    Failure::new(FailureCode::Config, why)
}

/// Lets an API announce users who are added and removed.
pub(super) fn announce_users(api: Api, hub: &WebhookHub) -> Api {
    api.with_webhooks(hub.clone())
}

fn store_failure(path: &Path, why: &UserStoreError) -> Failure {
    let code = match why {
        UserStoreError::InUse => FailureCode::Failure,
        _ => FailureCode::Config,
    };
    let failure = Failure::new(
        code,
        format!("[admin] store = \"{}\": {why}", path.display()),
    );
    match why {
        UserStoreError::InUse => {
            failure.with_hint("each process needs a store of its own; `adit upgrade` hands it over")
        }
        UserStoreError::OtherFile => {
            failure.with_hint("name a file that does not exist: adit creates it")
        }
        _ => failure,
    }
}

/// Checks what the file says about the API and receivers of events, without opening anything.
pub(super) fn check_settings(plan: &Plan) -> Result<(), Failure> {
    let file = plan.admin.as_ref();
    check_webhooks(plan).map_err(webhook_failure)?;
    if let Some(StoreSettings { path, .. }) = file.and_then(|file| file.store.as_ref()) {
        UserStore::check(path).map_err(|why| store_failure(path, &why))?;
    }
    match file.and_then(|file| file.tokens.as_deref()) {
        Some(path) => read_tokens_of_file(path).map(drop),
        None => Ok(()),
    }
}

async fn open_audit_log(path: PathBuf) -> Result<AuditLog, Failure> {
    let shown = path.display().to_string();
    let opening = spawn_blocking(move || AuditLog::open(&path)).await;
    let opened = opening.unwrap_or_else(|why| Err(std::io::Error::other(why)));
    opened.map_err(|why| {
        let what = format!("[admin] audit = \"{shown}\": {why}");
        Failure::new(FailureCode::Config, what)
            .with_hint("this account must be able to write to the file and its folder")
    })
}

fn without_listener(option: &str) -> Failure {
    Failure::new(FailureCode::Usage, format!("{option} needs --admin"))
        .with_hint("or `[admin]` in the configuration file: `adit help config`")
}

fn read_typed_tokens(written: &str) -> Result<Tokens, Failure> {
    let Some(path) = written.strip_prefix('@') else {
        return Err(typed_token_failure());
    };
    let file = read_tokens(Path::new(path), &format!("--admin-token {written}"))?;
    if file.readable_by_others {
        eprintln!(
            "warning: all users of this machine can read the token in `{path}`: chmod 600 {path}"
        );
    }
    parse_tokens(&file, &format!("--admin-token {written}"))
}

fn typed_token_failure() -> Failure {
    let what = "--admin-token requires @FILE: all users of this machine can read the command line";
    Failure::new(FailureCode::Usage, what).with_hint("--admin-token @FILE")
}

/// Returns the first token of the typed file, or of that of `[admin]`; `None` if there is neither.
pub(super) fn first_token(
    typed: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Zeroizing<String>>, Failure> {
    let Some((file, place)) = token_file(typed, file)? else {
        return Ok(None);
    };
    let token = token_lines(&file).find_map(|line| line.split_whitespace().next());
    match token {
        Some(word) => Ok(Some(Zeroizing::new(word.to_owned()))),
        None => Err(token_failure(&place, "there is no token")),
    }
}

/// Returns the first token that may read keys.
pub(super) fn revealing_token(
    typed: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Zeroizing<String>>, Failure> {
    let hint = "a token that may read keys is a line of the file of tokens, with `reveal` after it";
    let Some((file, place)) = token_file(typed, file)? else {
        let what = "keys are shown only with a token: --admin-token @FILE";
        return Err(Failure::new(FailureCode::Usage, what).with_hint(hint));
    };
    let token = token_lines(&file).find_map(|line| {
        let mut words = line.split_whitespace();
        words
            .next()
            .filter(|_| words.any(|scope| scope == "reveal"))
    });
    match token {
        Some(word) => Ok(Some(Zeroizing::new(word.to_owned()))),
        None => Err(Failure::new(
            FailureCode::Config,
            format!("{place}: no token may read keys"),
        )
        .with_hint(hint)),
    }
}

/// Reads the typed file of tokens, or that of `[admin]`, and returns it with the place for messages.
fn token_file(
    typed: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<(FileText, String)>, Failure> {
    let path = match (typed, file) {
        (Some(written), _) => match written.strip_prefix('@') {
            Some(path) => Path::new(path),
            None => return Err(typed_token_failure()),
        },
        (None, Some(path)) => path,
        (None, None) => return Ok(None),
    };
    let place = format!("the tokens in `{}`", path.display());
    Ok(Some((read_tokens(path, &place)?, place)))
}

fn token_lines(file: &FileText) -> impl Iterator<Item = &str> {
    file.text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
}

/// Reads the tokens of `[admin]`. The plan has a warning if others can read them.
fn read_tokens_of_file(path: &Path) -> Result<Tokens, Failure> {
    let place = format!("[admin] tokens = \"@{}\"", path.display());
    parse_tokens(&read_tokens(path, &place)?, &place)
}

fn read_tokens(path: &Path, place: &str) -> Result<FileText, Failure> {
    let file = SystemSources.read_file(path);
    file.map_err(|why| token_failure(place, &why.to_string()))
}

fn parse_tokens(file: &FileText, place: &str) -> Result<Tokens, Failure> {
    Tokens::parse(&file.text).map_err(|why| token_failure(place, &why.to_string()))
}

fn token_failure(place: &str, why: &str) -> Failure {
    Failure::new(FailureCode::Config, format!("{place}: {why}"))
        .with_hint("`adit keygen 2022-blake3-aes-256-gcm > FILE` generates a token")
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
