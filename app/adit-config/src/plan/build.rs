//! Builds plans from words, from `-L`/`-F` and from files.

use std::path::Path;

use crate::plan::unchecked::{UncheckedRoute, UncheckedStage, hop, is_route_name, listen};
use crate::plan::{Plan, Stage, check, file};
use crate::schema::EndpointRole;
use crate::scheme::secret_mask;
use crate::text::{Diagnostics, Lookup, Machine, Origin, Problem, Sources, WarningKind, read_file};

/// An option of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgItem {
    /// `-L URL`: starts a route, or adds a listener to the previous one if that has no hop yet.
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
        Self::from_words_with(words, &Machine)
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
        from_items(items, sources)
    }

    /// Builds a plan from `-L` and `-F` options, in their order.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_words`], and a hop before the first listener.
    pub fn from_args(items: &[ArgItem]) -> Result<Self, Vec<Problem>> {
        Self::from_args_with(items, &Machine)
    }

    /// Like [`Plan::from_args`], with other sources of files and variables.
    ///
    /// # Errors
    ///
    /// As for [`Plan::from_args`].
    pub fn from_args_with(items: &[ArgItem], sources: &dyn Sources) -> Result<Self, Vec<Problem>> {
        let items = items.iter().map(|item| match item {
            ArgItem::Listen(text) => (EndpointRole::Listener, text.as_str()),
            ArgItem::Forward(text) => (EndpointRole::Hop, text.as_str()),
        });
        from_items(items, sources)
    }

    /// Builds a plan from the text of a configuration file. `file_name` is shown in messages, and
    /// relative paths in the text refer to its folder.
    ///
    /// # Errors
    ///
    /// Syntax errors of TOML, or all problems of the routes.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        Self::from_toml_with(text, file_name, &Machine)
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
        let routes = toml_routes(&mut diagnostics, text, file_name, sources);
        check::finish(diagnostics, routes)
    }

    /// Builds a plan from a configuration file, with a warning if other users can read secrets in it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, and as for [`Plan::from_toml`].
    pub fn from_file(path: &Path) -> Result<Self, Vec<Problem>> {
        let name = path.display().to_string();
        let file = match read_file(path, file::MAX_FILE_LEN) {
            Ok(file) => file,
            Err(why) => {
                let title = format!("cannot read `{name}`: {why}");
                let help = "`-c FILE` names the configuration file";
                return Err(vec![Problem::without_place(title, help)]);
            }
        };
        let mut diagnostics = Diagnostics::default();
        let routes = toml_routes(&mut diagnostics, &file.text, &name, &Machine);
        if file.readable_by_others && diagnostics.literal_secret {
            let title = format!("every user of this machine can read the secrets in `{name}`");
            let about = Problem::without_place(title, format!("chmod 600 {name}"));
            diagnostics.warning(WarningKind::ReadableSecret, about);
        }
        check::finish(diagnostics, routes)
    }
}

/// Parses the routes of a file.
fn toml_routes(
    diagnostics: &mut Diagnostics,
    text: &str,
    file_name: &str,
    sources: &dyn Sources,
) -> Vec<UncheckedRoute> {
    let base = Path::new(file_name)
        .parent()
        .unwrap_or_else(|| Path::new(""));
    file::routes(diagnostics, Lookup { sources, base }, text, file_name)
}

/// Builds a plan from endpoints with their roles.
fn from_items<'a>(
    items: impl Iterator<Item = (EndpointRole, &'a str)>,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let mut diagnostics = Diagnostics::default();
    let base = Path::new("");
    let lookup = Lookup { sources, base };
    let mut routes: Vec<UncheckedRoute> = Vec::new();
    let mut begun = false;
    let mut chained = true;
    for (i, (role, text)) in items.enumerate() {
        let origin = Origin::Argument(i + 1);
        let excerpt = secret_mask::document(&origin, text).whole();
        match role {
            EndpointRole::Listener => {
                if chained {
                    routes.push(UncheckedRoute::new(format!("route{}", routes.len() + 1)));
                    chained = false;
                }
                begun = true;
                let found = listen(&mut diagnostics, lookup, excerpt, text, None);
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
                let found = hop(&mut diagnostics, lookup, excerpt, text);
                match (routes.last_mut(), found) {
                    (Some(route), Some((hop, place))) => route.via.push(UncheckedStage {
                        stage: Stage::One(hop),
                        place,
                    }),
                    (None, Some((_, place))) => diagnostics.problem(Problem {
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
    if !begun && diagnostics.problems.is_empty() {
        let help = "start with `mixed://127.0.0.1:1080`";
        diagnostics.problem(Problem::without_place("no endpoint to listen on", help));
    }
    unique_names(&mut routes);
    check::finish(diagnostics, routes)
}

/// Makes the names of routes unique. Names from `#name` can repeat; later ones become `routeN`.
fn unique_names(routes: &mut [UncheckedRoute]) {
    for i in 1..routes.len() {
        let (before, rest) = routes.split_at_mut(i);
        if let Some(route) = rest.first_mut()
            && before.iter().any(|other| other.name == route.name)
        {
            route.name = format!("route{}", i + 1);
        }
    }
}
