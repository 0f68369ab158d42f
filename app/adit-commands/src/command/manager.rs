//! `adit manager`: servers that are added and removed by the datagrams of ss-manager.

use std::sync::Arc;

use adit_admin::manager::{CommandListener, CommandListenerError, Manager, Mode, Settings};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{Plan, RunSettings};
use adit_convert::AllowedPlugins;
use adit_engine::Engine;
use adit_wire::Host;
use zeroize::Zeroizing;

use super::{link_tools, run};
use crate::args;

pub(super) fn run_manager(typed: &args::ManagerArgs) -> CommandResult {
    let opened = ManagerStart {
        address: &typed.manager_address,
        exposed: typed.manager_insecure,
        nofile: None,
        first_servers: Vec::new(),
    };
    serve_commands(settings_from_args(typed)?, opened, || Ok(()))
}

/// The address of a manager and its first servers.
pub(super) struct ManagerStart<'a> {
    /// The address at which commands are received.
    pub(super) address: &'a str,
    /// True if other machines may reach the address.
    pub(super) exposed: bool,
    /// Maximum number of file descriptors.
    pub(super) nofile: Option<u64>,
    /// Ports and passwords of the first servers.
    pub(super) first_servers: Vec<(u16, Zeroizing<String>)>,
}

/// Serves commands. Calls `begun` once the first servers listen.
pub(super) fn serve_commands(
    settings: Settings,
    opened: ManagerStart<'_>,
    begun: impl FnOnce() -> CommandResult,
) -> CommandResult {
    settings.check()?;
    adit_cli::block_on_with_nofile(opened.nofile, |mut signals| async {
        let listener = CommandListener::open(opened.address, opened.exposed);
        let listener = async { listener.await.map_err(to_failure) };
        let listener = signals.run_until_ended(listener).await?;
        // There are no servers yet: each is added by a datagram.
        let nothing = Plan {
            routes: Vec::new(),
            sets: Vec::new(),
            dns: Vec::new(),
            default_dns: None,
            warnings: Vec::new(),
            run: RunSettings::default(),
            log: adit_config::LogSettings::default(),
            admin: None,
            fleet: None,
            webhooks: Vec::new(),
        };
        let engine = Arc::new(Engine::start(&nothing).await?);
        let mut manager = Manager::new(engine.clone(), settings);
        for (port, password) in &opened.first_servers {
            let add = serde_json::json!({ "server_port": port, "password": &**password });
            let add = Zeroizing::new(format!("add: {add}"));
            let answer = manager.handle(add.as_bytes()).await.concat();
            if answer != "ok" {
                let what = format!("port {port}: {answer}");
                return Err(Failure::new(FailureCode::Failure, what));
            }
        }
        eprintln!("manager listening on {listener}");
        begun()?;
        tokio::select! {
            () = listener.serve(&mut manager) => Ok(()),
            done = run::serve_until_signal(engine, signals) => done,
        }
    })
}

/// Parses the addresses to listen on. No address means all of them.
pub(super) fn parse_hosts(texts: &[String]) -> Result<Vec<Option<Host>>, Failure> {
    let mut hosts = Vec::with_capacity(texts.len());
    for text in texts {
        let host = Host::parse(text.trim_start_matches('[').trim_end_matches(']'));
        hosts.push(Some(host.map_err(|e| {
            Failure::new(FailureCode::Usage, format!("-s {text}: {e}"))
        })?));
    }
    if hosts.is_empty() {
        hosts.push(None);
    }
    Ok(hosts)
}

fn settings_from_args(typed: &args::ManagerArgs) -> Result<Settings, Failure> {
    let plugin = typed.plugin.clone();
    Ok(Settings {
        hosts: parse_hosts(&typed.host)?,
        method: link_tools::parse_method(&typed.method)?,
        mode: match typed.mode {
            args::TrafficMode::TcpOnly => Mode::TcpOnly,
            args::TrafficMode::UdpOnly => Mode::UdpOnly,
            args::TrafficMode::TcpAndUdp => Mode::TcpAndUdp,
        },
        plugin: plugin.map(|name| (name, typed.plugin_opts.clone().unwrap_or_default())),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        private: typed.allow_private.clone(),
    })
}

fn to_failure(why: CommandListenerError) -> Failure {
    match &why {
        CommandListenerError::Exposed(_) => Failure::new(FailureCode::Config, why.to_string())
            .with_hint(
                "use a loopback port (--manager-address 127.0.0.1:6001) or a path; \
             --manager-insecure allows it",
            ),
        CommandListenerError::Socket { .. } => Failure::new(FailureCode::Network, why.to_string()),
    }
}
