//! The commands that generate keys, convert links, and check and explain plans.

use adit_cli::{Code, Done, Failure};
use adit_config::{link, nearest_word};
use adit_shadowsocks::{Key, Method};

use super::run;
use crate::args;
use crate::qr;

pub(super) fn keygen(typed: &args::Keygen) -> Done {
    let method = method(&typed.method)?;
    let (_, secret) = Key::generate(method, &mut adit_net::system::SystemRng);
    if secret.is_empty() {
        return Err(Failure::new(
            Code::Usage,
            format!("method {method} does not use a key"),
        ));
    }
    println!("{secret}");
    Ok(())
}

/// Returns the method with this name, or a failure that lists the names.
pub(super) fn method(name: &str) -> Result<Method, Failure> {
    name.parse().map_err(|_| {
        let failure = Failure::new(Code::Config, format!("unknown method `{name}`"));
        match nearest_word(name, Method::ALL.into_iter().map(Method::name)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => {
                let current = Method::ALL.into_iter().filter(|m| !m.is_legacy());
                let names = current.map(Method::name).collect::<Vec<_>>().join(", ");
                failure.hint(format!(
                    "the methods are {names}; `adit help ss` lists the legacy ones"
                ))
            }
        }
    })
}

pub(super) fn url(typed: &args::Url) -> Done {
    println!("{}", link::toggle_form(&typed.url)?);
    Ok(())
}

pub(super) fn qr(typed: &args::Url) -> Done {
    let shared = link::share_link(&typed.url)?;
    println!("{}", qr::draw(&shared)?);
    println!("{shared}");
    Ok(())
}

pub(super) fn check(typed: &args::Plan) -> Done {
    let plan = run::plan(typed)?;
    run::warn(&plan);
    let (routes, listeners) = (
        plan.routes.len(),
        plan.routes.iter().map(|r| r.listen.len()).sum::<usize>(),
    );
    println!(
        "ok: {routes} route{}, {listeners} listener{}",
        s(routes),
        s(listeners)
    );
    Ok(())
}

fn s(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

pub(super) fn explain(typed: &args::Plan) -> Done {
    let plan = run::plan(typed)?;
    run::warn(&plan);
    print!("{}", adit_config::explain_plan(&plan));
    for line in run::key_ids(&plan) {
        println!("{line}");
    }
    Ok(())
}
