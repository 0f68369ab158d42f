//! The service that the arguments define, independent of the service manager.

use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};
use adit_config::{InterceptMethod, ListenerKind, Plan, RouteOption, WarningKind};
use clap::Parser as _;

use super::folders::config_home;
use crate::args::{Args, Command, PlanArgs, RunArgs, ServerAction, ServerArgs, service};
use crate::command::run;

/// The user that system services run as, and their group.
pub(super) const SERVICE_USER: &str = "adit";
/// Folders that a system service cannot read: its sandbox hides them, or their owner keeps them private.
const HIDDEN_FOLDERS: &[&str] = &["/home", "/root", "/tmp", "/var/tmp", "/run/user"];

/// The owner of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceScope {
    /// The system: it starts at boot, and runs as a user of its own.
    System,
    /// The user who installs it.
    User,
}

/// A process that a service manager starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceDefinition {
    pub(super) name: String,
    pub(super) scope: ServiceScope,
    /// The absolute path of the program.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// True if the process reports that it is ready (`sd_notify(3)`), and so can be upgraded.
    pub(super) reports_start: bool,
    /// True if the process reads its configuration again on SIGHUP.
    pub(super) can_reload: bool,
    /// The privileges that the listeners may need.
    pub(super) privileges: Privileges,
    /// Those that the current ones need. Not every OpenRC can set capabilities: they are set if there is no other way.
    pub(super) needed: Privileges,
}

/// The capabilities that the listeners need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Privileges {
    /// Ports below 1024.
    pub(super) low_ports: bool,
    /// Traffic for other hosts.
    pub(super) transparent: bool,
}

impl Privileges {
    /// The privileges of a process whose listeners may change.
    const ANY_PORT: Self = Self {
        low_ports: true,
        transparent: false,
    };

    /// Returns the names of the capabilities, as systemd writes them.
    pub(super) fn capabilities(self) -> Vec<&'static str> {
        let all = [
            (self.transparent, "CAP_NET_ADMIN"),
            (self.low_ports, "CAP_NET_BIND_SERVICE"),
        ];
        let needed = all.into_iter().filter(|(needed, _)| *needed);
        needed.map(|(_, name)| name).collect()
    }

    /// Returns the privileges that the listeners of a plan need.
    fn of_plan(plan: &Plan) -> Self {
        let listeners = || plan.routes.iter().flat_map(|route| &route.listen);
        let transparent = listeners().any(|listener| {
            matches!(&listener.kind, ListenerKind::Transparent(kind)
                if kind.method != InterceptMethod::Redirect)
        });
        // Answers to clients come from the ports of their destinations, such as 53 and 443.
        let low_ports = transparent || listeners().any(|listener| is_low(listener.addr.port));
        Self {
            low_ports,
            transparent,
        }
    }
}

const fn is_low(port: u16) -> bool {
    port != 0 && port < 1024
}

impl ServiceDefinition {
    /// Returns the service of the arguments, whose configuration has been checked.
    ///
    /// # Errors
    /// The configuration is invalid, or the service could not read it.
    pub(super) fn from_args(
        typed: &service::ServiceInstallArgs,
        program: &Path,
    ) -> Result<Self, Failure> {
        let scope = match typed.service.user {
            true => ServiceScope::User,
            false => ServiceScope::System,
        };
        let name = check_name(&typed.service.name)?;
        let mut definition = Self {
            name: name.to_owned(),
            scope,
            program: String::new(),
            arguments: Vec::new(),
            reports_start: true,
            can_reload: false,
            privileges: Privileges::ANY_PORT,
            needed: Privileges::default(),
        };
        if typed.words.is_empty() {
            definition.use_file(typed.config.as_deref(), typed.print)?;
        } else {
            definition.use_words(&typed.words)?;
        }
        let hint = "install the program in /usr/local/bin";
        definition.program = readable_path(scope, program, hint)?;
        Ok(definition)
    }

    /// Runs the configuration file `typed`, or the default one.
    fn use_file(&mut self, typed: Option<&Path>, only_print: bool) -> Result<(), Failure> {
        let file = match typed {
            Some(file) => absolute(file)?,
            None => default_config(self.scope, &self.name)?,
        };
        let hint = "put it into /etc/adit";
        let path = readable_path(self.scope, &file, hint)?;
        // The unit of a package is written before its configuration.
        if !only_print || file.is_file() {
            let plan = run::plan_from_args(&plan_args_of_file(file))?;
            self.needed = Privileges::of_plan(&plan);
            self.privileges.transparent = self.needed.transparent;
        }
        self.arguments = ["run", "-c", &path].map(str::to_owned).to_vec();
        self.can_reload = true;
        Ok(())
    }

    /// Runs `words`: URLs, or a command that serves.
    fn use_words(&mut self, words: &[String]) -> Result<(), Failure> {
        let is_command = words
            .first()
            .is_some_and(|word| !word.contains([':', '/', '.']) && !word.starts_with('-'));
        let mut line = vec!["adit".to_owned()];
        if !is_command {
            line.push("run".to_owned());
        }
        line.extend_from_slice(words);
        if let Some(word) = line.iter().find(|word| word.contains('$')) {
            let what = format!("`{word}`: a service does not have the variables of your shell");
            return Err(Failure::new(FailureCode::Usage, what)
                .with_hint("write `@/absolute/FILE` for a key"));
        }
        let parsed = Args::try_parse_from(&line).map_err(|why| {
            if !why.use_stderr() {
                // `adit service install server --help`
                why.exit();
            }
            Failure::new(
                FailureCode::Usage,
                format!("the arguments of the service: {}", why.render()),
            )
        })?;
        match &parsed.command {
            Command::Run(run) if run.plan.config.is_none() => self.use_plan(&run.plan)?,
            Command::Run(_) => {
                return Err(Failure::new(
                    FailureCode::Usage,
                    "a file is an option of `adit service install` itself: -c FILE",
                ));
            }
            Command::Server(server) => self.use_server(server)?,
            Command::Client(client) => {
                let from_profile = client.url.as_deref().is_some_and(|url| {
                    url != "-" && !url.contains("://") && client.subscribe.is_none()
                });
                if self.scope == ServiceScope::System || !from_profile || client.check {
                    let what = "a service of `adit client` needs --user and a stored profile";
                    return Err(Failure::new(FailureCode::Usage, what).with_hint(
                        "`adit client - --save home` stores a URL where only you can read it; then \
                         `adit service install --user client home`",
                    ));
                }
                self.reports_start = false;
            }
            _ => {
                let word = words.first().map_or("", String::as_str);
                let what = format!("`adit {word}` cannot be a service");
                return Err(Failure::new(FailureCode::Usage, what)
                    .with_hint("the commands are run (or URLs alone), server and client"));
            }
        }
        self.arguments = line.split_off(1);
        Ok(())
    }

    fn use_plan(&mut self, typed: &PlanArgs) -> Result<(), Failure> {
        let plan = run::plan_from_args(typed)?;
        // All users can read the file of a service, and the arguments of its process.
        if plan
            .warnings
            .iter()
            .any(|warning| warning.kind == WarningKind::LiteralSecret)
        {
            let what = "all users of this machine can read a key in the arguments of a service";
            return Err(Failure::new(FailureCode::Usage, what)
                .with_hint("write `@/absolute/FILE` instead of the key, or use -c FILE"));
        }
        self.needed = Privileges::of_plan(&plan);
        self.privileges = self.needed;
        Ok(())
    }

    fn use_server(&mut self, server: &ServerArgs) -> Result<(), Failure> {
        if let Some(ServerAction::Url) = server.ask {
            let what = "`adit server url` prints a URL and ends; the service is `adit server`";
            return Err(Failure::new(FailureCode::Usage, what));
        }
        let port = server.listen.rsplit(':').next().map(str::parse);
        if let Some(Ok(port)) = port {
            self.privileges.low_ports = is_low(port);
            self.needed = self.privileges;
        }
        Ok(())
    }
}

/// Checks that the plan of the arguments does not depend on the current folder: the service has another one.
pub(super) fn check_in_other_folder(arguments: &[String]) -> Result<(), Failure> {
    let line = std::iter::once("adit").chain(arguments.iter().map(String::as_str));
    let (Ok(args), Ok(program)) = (Args::try_parse_from(line), std::env::current_exe()) else {
        return Ok(());
    };
    let Command::Run(RunArgs { plan, .. }) = &args.command else {
        return Ok(());
    };
    let mut check = std::process::Command::new(program);
    check.arg("check");
    for item in plan.ends.items() {
        match item {
            RouteOption::Listen(url) => check.args(["-L", url]),
            RouteOption::Forward(url) => check.args(["-F", url]),
        };
    }
    let run = check.args(&plan.words).current_dir("/").output();
    if run.is_ok_and(|run| run.status.success()) {
        return Ok(());
    }
    let what =
        "the service has another current folder than your shell, and does not find its files";
    Err(Failure::new(FailureCode::Usage, what)
        .with_hint("write them with absolute paths: `@/etc/adit/server.key`"))
}

fn check_name(name: &str) -> Result<&str, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.chars().all(is_plain)
    {
        return Ok(name);
    }
    let what = format!(
        "--name {name}: a name has at most 64 letters, digits, `-` and `_`, and no `-` in front"
    );
    Err(Failure::new(FailureCode::Usage, what))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|why| Failure::new(FailureCode::Usage, format!("{}: {why}", path.display())))
}

/// Returns the path as text, if a service of this scope can read what is there.
fn readable_path(scope: ServiceScope, path: &Path, hint: &str) -> Result<String, Failure> {
    let shown = path.display();
    let hidden = HIDDEN_FOLDERS
        .iter()
        .find(|folder| path.starts_with(folder));
    if let (ServiceScope::System, Some(folder)) = (scope, hidden) {
        let what = format!("{shown}: a system service cannot read files in {folder}");
        return Err(Failure::new(FailureCode::Usage, what).with_hint(hint));
    }
    match path.to_str() {
        Some(text) if !text.contains(|c: char| c.is_control()) => Ok(text.to_owned()),
        _ => Err(Failure::new(
            FailureCode::Usage,
            format!("{shown}: the path contains characters that the file of a service cannot"),
        )),
    }
}

/// Returns the path of the file that a service of this name runs by default.
fn default_config(scope: ServiceScope, name: &str) -> Result<PathBuf, Failure> {
    let file = format!("{name}.toml");
    Ok(match scope {
        ServiceScope::System => Path::new("/etc/adit").join(file),
        ServiceScope::User => config_home()?.join("adit").join(file),
    })
}

fn plan_args_of_file(file: PathBuf) -> PlanArgs {
    PlanArgs {
        words: Vec::new(),
        ends: Default::default(),
        config: Some(file),
    }
}
