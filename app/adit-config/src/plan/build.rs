//! Builds plans from words, from `-L`/`-F` and from files.

use std::path::Path;

use crate::plan::short_listener::expand_short_listener;
use crate::plan::toml_file::UncheckedFile;
use crate::plan::unchecked_route::{
    UncheckedRoute, UncheckedStage, is_route_name, parse_hop, parse_listener,
};
use crate::plan::{Plan, Stage, check, dns, toml_file};
use crate::schema::EndpointRole;
use crate::scheme::secret_redaction;
use crate::text::{
    Diagnostics, LineIndex, Origin, Problem, SecretLookup, Sources, SystemSources, read_file,
};

/// An option of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteOption {
    /// `-L URL`, or a [short form](crate::expand_short_listener): starts a route, or adds a listener to the previous one if that has no hop yet.
    Listen(String),
    /// `-F URL`: adds a hop to the current route.
    Forward(String),
}

impl Plan {
    /// Builds a plan with one route: the first word is the listener, the others are the chain, left to
    /// right.
    ///
    /// Reads files and the environment for `@file` and `$NAME`.
    ///
    /// # Errors
    ///
    /// All problems of the endpoints and of their combination.
    pub fn from_words(words: &[String]) -> Result<Self, Vec<Problem>> {
        Self::from_words_with(words, &SystemSources)
    }

    /// Like [`Plan::from_words`], with other sources of files and variables.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_words`].
    pub fn from_words_with(words: &[String], sources: &dyn Sources) -> Result<Self, Vec<Problem>> {
        let items = words.iter().enumerate().map(|(i, word)| {
            let role = if i == 0 {
                EndpointRole::Listener
            } else {
                EndpointRole::Hop
            };
            (role, word.as_str())
        });
        plan_from_items(items, sources)
    }

    /// Builds a plan from `-L` and `-F` options, in their order.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_words`], and a hop before the first listener.
    pub fn from_args(items: &[RouteOption]) -> Result<Self, Vec<Problem>> {
        Self::from_args_with(items, &SystemSources)
    }

    /// Like [`Plan::from_args`], with other sources of files and variables.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_args`].
    pub fn from_args_with(
        items: &[RouteOption],
        sources: &dyn Sources,
    ) -> Result<Self, Vec<Problem>> {
        let items = items.iter().map(|item| match item {
            RouteOption::Listen(text) => (EndpointRole::Listener, text.as_str()),
            RouteOption::Forward(text) => (EndpointRole::Hop, text.as_str()),
        });
        plan_from_items(items, sources)
    }

    /// Builds a plan from the text of a configuration file. `file_name` is shown in messages, and
    /// relative paths in the text refer to its folder.
    ///
    /// # Errors
    ///
    /// Syntax errors of TOML, or all problems of the routes.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        Self::from_toml_with(text, file_name, &SystemSources)
    }

    /// Like [`Plan::from_toml`], with other sources of files and variables.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_toml`].
    pub fn from_toml_with(
        text: &str,
        file_name: &str,
        sources: &dyn Sources,
    ) -> Result<Self, Vec<Problem>> {
        let mut diagnostics = Diagnostics::default();
        let file = parse_toml(&mut diagnostics, text, file_name, sources);
        check_file(diagnostics, file)
    }

    /// Builds a plan from a configuration file, with a warning if other users can read secrets in it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, and as for [`Plan::from_toml`].
    pub fn from_file(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::from_file_with(path, &SystemSources)
    }

    /// Like [`Plan::from_file`], with other sources of the files and variables that it refers to.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_file`].
    pub fn from_file_with(path: &Path, sources: &dyn Sources) -> Result<Self, Vec<Problem>> {
        let name = path.display().to_string();
        let file = match read_file(path, toml_file::MAX_FILE_LEN) {
            Ok(file) => file,
            Err(why) => {
                let title = format!("cannot read `{name}`: {why}");
                let help = "`-c FILE` names the configuration file";
                return Err(vec![Problem::without_place(title, help)]);
            }
        };
        let mut diagnostics = Diagnostics::default();
        let content = parse_toml(&mut diagnostics, &file.text, &name, sources);
        if file.readable_by_others && diagnostics.literal_secret {
            toml_file::warn_readable_secrets(&mut diagnostics, &name);
        }
        check_file(diagnostics, content)
    }
}

/// Parses a file.
fn parse_toml(
    diagnostics: &mut Diagnostics,
    text: &str,
    file_name: &str,
    sources: &dyn Sources,
) -> UncheckedFile {
    let base = Path::new(file_name)
        .parent()
        .unwrap_or_else(|| Path::new(""));
    toml_file::parse_file(diagnostics, SecretLookup { sources, base }, text, file_name)
}

/// Returns the plan of a file, or all problems.
fn check_file(mut diagnostics: Diagnostics, file: UncheckedFile) -> Result<Plan, Vec<Problem>> {
    let is_table = |name: &String| name != dns::SYSTEM_DNS;
    let default_dns = file.default_dns.filter(is_table);
    let dns = dns::check_dns(
        &mut diagnostics,
        file.dns,
        &file.routes,
        default_dns.as_deref(),
    );
    let mut plan = check::check_plan(diagnostics, file.routes, file.names_fleet)?;
    for route in &mut plan.routes {
        let own = route.dns.take().or_else(|| default_dns.clone());
        route.dns = own.filter(is_table);
    }
    Ok(Plan {
        dns,
        default_dns,
        sets: file.sets,
        run: file.run,
        log: file.log,
        admin: file.admin,
        fleet: file.fleet,
        webhooks: file.webhooks,
        ..plan
    })
}

/// Builds a plan from endpoints with their roles.
fn plan_from_items<'a>(
    items: impl Iterator<Item = (EndpointRole, &'a str)>,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let mut diagnostics = Diagnostics::default();
    let base = Path::new("");
    let lookup = SecretLookup { sources, base };
    let mut routes: Vec<UncheckedRoute> = Vec::new();
    let mut begun = false;
    let mut chained = true;
    for (i, (role, written)) in items.enumerate() {
        let origin = Origin::Argument(i + 1);
        let expanded = match role {
            EndpointRole::Listener => expand_short_listener(written),
            EndpointRole::Hop => None,
        };
        let text = expanded.as_deref().unwrap_or(written);
        let lines = LineIndex::default();
        let excerpt = secret_redaction::redacting_document(&origin, text, &lines).as_url();
        match role {
            EndpointRole::Listener => {
                if chained {
                    routes.push(UncheckedRoute::new(format!("route{}", routes.len() + 1)));
                    chained = false;
                }
                begun = true;
                let found = parse_listener(&mut diagnostics, lookup, excerpt, text, None);
                if let (Some(route), Some((draft, name))) = (routes.last_mut(), found) {
                    if route.listen.is_empty()
                        && let Some(name) = name.filter(|name| is_route_name(name))
                    {
                        route.name = name;
                    }
                    route.listen.push(draft);
                }
            }
            EndpointRole::Hop => {
                chained = true;
                let found = parse_hop(&mut diagnostics, lookup, excerpt, text);
                match (routes.last_mut(), found) {
                    (Some(route), Some((hop, place))) => route.via.push(UncheckedStage {
                        stage: Stage::Single(hop),
                        place,
                    }),
                    (None, Some((_, place))) => diagnostics.add_problem(Problem {
                        title: "a hop before the first listener".to_owned(),
                        place: Some(place),
                        label: String::new(),
                        help: vec!["`-L URL` starts a route, `-F URL` adds a hop to it".to_owned()],
                    }),
                    (_, None) => {}
                }
            }
        }
    }
    if !begun && !diagnostics.has_problems() {
        let help = "start with `mixed://127.0.0.1:1080`";
        diagnostics.add_problem(Problem::without_place("no endpoint to listen on", help));
    }
    make_names_unique(&mut routes);
    check::check_plan(diagnostics, routes, false)
}

/// Makes the names of routes unique. Names from `#name` can repeat; later ones become `routeN`.
fn make_names_unique(routes: &mut [UncheckedRoute]) {
    for i in 1..routes.len() {
        let (before, rest) = routes.split_at_mut(i);
        if let Some(route) = rest.first_mut()
            && before.iter().any(|other| other.name == route.name)
        {
            route.name = format!("route{}", i + 1);
        }
    }
}
