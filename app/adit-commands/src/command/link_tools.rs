//! The commands that generate keys, convert links, check and explain plans, and print the schema of files.

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{link, nearest_word};
use adit_shadowsocks::{Key, Method};
use serde_json::json;

use super::{admin, decision, fleet_node, otlp, plan_keys, rule_sets, run};
use crate::args;
use crate::json;
use crate::qr_code;

pub(super) fn print_new_key(typed: &args::KeygenArgs) -> CommandResult {
    let method = parse_method(&typed.method)?;
    let (_, secret) = Key::generate(method, &mut adit_net::system::SystemRng);
    if secret.is_empty() {
        return Err(Failure::new(
            FailureCode::Usage,
            format!("method {method} does not use a key"),
        ));
    }
    if typed.json.json {
        let result = json!({ "method": method.name(), "key": secret.as_str() });
        json::print_result("keygen", &result);
        return Ok(());
    }
    println!("{secret}");
    Ok(())
}

/// Returns the method with this name, or a failure that lists the names.
pub(super) fn parse_method(name: &str) -> Result<Method, Failure> {
    name.parse().map_err(|_| {
        let failure = Failure::new(FailureCode::Config, format!("unknown method `{name}`"));
        match nearest_word(name, Method::ALL.into_iter().map(Method::name)) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => {
                let current = Method::ALL.into_iter().filter(|m| !m.is_legacy());
                let names = current.map(Method::name).collect::<Vec<_>>().join(", ");
                failure.with_hint(format!(
                    "the methods are {names}; `adit help ss` lists the legacy ones"
                ))
            }
        }
    })
}

pub(super) fn print_url(typed: &args::UrlArgs) -> CommandResult {
    let url = link::toggle_form(&typed.url)?;
    match typed.json.json {
        true => json::print_result("url", &json!({ "url": url })),
        false => println!("{url}"),
    }
    Ok(())
}

pub(super) fn print_qr_code(typed: &args::UrlArgs) -> CommandResult {
    let shared = link::share_link(&typed.url)?;
    if typed.json.json {
        json::print_result("qr", &json!({ "url": shared }));
        return Ok(());
    }
    println!("{}", qr_code::render_qr_code(&shared)?);
    println!("{shared}");
    Ok(())
}

pub(super) fn check_plan(typed: &args::CheckArgs) -> CommandResult {
    let plan = run::plan_from_args(&typed.plan)?;
    let is_json = typed.json.json;
    if !is_json {
        run::print_warnings(&plan);
    }
    admin::check_settings(&plan)?;
    otlp::check_settings(&plan)?;
    fleet_node::check_settings(&plan)?;
    let sets = rule_sets::check(&plan)?;
    let (routes, listeners) = (
        plan.routes.len(),
        plan.routes.iter().map(|r| r.listen.len()).sum::<usize>(),
    );
    if is_json {
        let result = json!({
            "routes": routes,
            "listeners": listeners,
            "ruleSets": sets,
            "warnings": json::warnings_of(&plan),
        });
        json::print_result("check", &result);
        return Ok(());
    }
    println!(
        "ok: {routes} route{}, {listeners} listener{}",
        plural_suffix(routes),
        plural_suffix(listeners)
    );
    for set in sets {
        println!("{set}");
    }
    Ok(())
}

pub(super) fn print_schema() -> CommandResult {
    println!("{}", adit_config::json_schema());
    Ok(())
}

fn plural_suffix(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

pub(super) fn explain_plan(typed: &args::ExplainArgs) -> CommandResult {
    let plan = run::plan_from_args(&typed.plan)?;
    let is_json = typed.json.json;
    if !is_json {
        run::print_warnings(&plan);
    }
    if let Some(target) = &typed.target {
        return decision::print_decisions(&plan, typed, target);
    }
    if is_json {
        let result = json!({
            "plan": adit_config::explain_plan_as_document(&plan),
            "keys": plan_keys::plan_keys(&plan),
            "warnings": json::warnings_of(&plan),
        });
        json::print_result("explain", &result);
        return Ok(());
    }
    print!("{}", adit_config::explain_plan(&plan));
    for key in plan_keys::plan_keys(&plan) {
        println!("{key}");
    }
    Ok(())
}
