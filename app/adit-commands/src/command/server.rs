//! `adit server`: a Shadowsocks server with a stored key.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::Path;

use adit_admin::outgoing_address::outgoing_address;
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::{Plan, link};
use adit_engine::access::is_private;
use adit_shadowsocks::Method;
use adit_wire::{Host, Target};
use serde_json::json;

use super::upgrade::program_of_this_process;
use super::{link_tools, plan_keys, run};
use crate::args;
use crate::{fastest_method, json, qr_code, stored_key};

pub(super) fn run_server(typed: &args::ServerArgs) -> CommandResult {
    let listen = parse_listen_address(&typed.listen)?;
    let method = typed
        .method
        .as_deref()
        .map(link_tools::parse_method)
        .transpose()?;
    let dir = adit_cli::state_folder(typed.state.as_deref())?;
    if let Some(args::ServerAction::Url) = typed.ask {
        return print_url(typed, &listen, method, &dir);
    }
    let mut picked = None;
    let kept = stored_key::load_or_generate_key(&dir, method, || {
        let picks = fastest_method::measure_methods();
        let best = picks.first().map_or(Method::Blake3Aes128Gcm, |p| p.method);
        picked = Some(picks);
        best
    })?;
    let mut url = link::shadowsocks_link(kept.method, &kept.secret, &listen.host, listen.port);
    if let Some(nets) = &typed.allow_private {
        url.push_str(&format!("?allow_private={nets}"));
    }
    let plan = Plan::from_words(&[url])?;
    let program = program_of_this_process();
    let shown = shown_host(typed.host.as_deref(), &listen)?;
    adit_cli::block_on(|mut signals| async {
        // The port is known once it is bound.
        let (engine, upgrades) = run::start_arguments(&plan, program, &mut signals).await?;
        let port = engine
            .listeners()
            .first()
            .map_or(listen.port, |l| l.addr.port());
        let url = link::shadowsocks_link(kept.method, &kept.secret, &shown, port);
        let shows_url = typed.show_url || std::io::stdout().is_terminal();
        if typed.json.json {
            let addresses = engine.listeners();
            let started = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "method": kept.method.name(),
                "keyId": plan_keys::key_id(kept.method, &kept.secret),
                "keyFile": kept.path.display().to_string(),
                "keyIsNew": kept.is_new,
                "listeners": addresses.iter().map(|l| l.addr.to_string()).collect::<Vec<_>>(),
                "url": shows_url.then_some(url),
                "isPrivateAddress": matches!(shown, Host::Ip(ip) if is_private(ip)),
            });
            json::print_event("server", "listening", &started);
            return run::serve_arguments(engine, upgrades, signals).await;
        }
        println!("adit {}", env!("CARGO_PKG_VERSION"));
        println!(
            "method   {}{}",
            kept.method,
            method_reason(picked.as_deref(), &kept)
        );
        println!("key-id   {}", plan_keys::key_id(kept.method, &kept.secret));
        println!(
            "key      {} {}",
            if kept.is_new {
                "generated, in"
            } else {
                "stored, in"
            },
            kept.path.display()
        );
        if shows_url {
            println!("url      {url}");
            if !typed.no_qr {
                println!("\n{}", qr_code::render_qr_code(&url)?);
            }
            // Not with the URL as an argument, which all users of the client's machine could read.
            println!(
                "Client:  adit client - --save home    asks for the URL; from then on: adit client home"
            );
            println!(
                "Phone:   scan the code with a Shadowsocks app that supports the 2022 edition"
            );
        } else {
            // Output that is not a terminal may be a log, which would keep the key.
            println!(
                "url      {}",
                how_to_print_url(typed, &dir, &listen.host, port)
            );
        }
        if let Host::Ip(ip) = shown
            && is_private(ip)
        {
            println!(
                "Note:    {ip} is not a public address. Behind NAT, put the public address into \
                 the URL: adit server --host NAME"
            );
        }
        for listening in engine.listeners() {
            eprintln!("listening on {}", listening.addr);
        }
        run::serve_arguments(engine, upgrades, signals).await
    })
}

/// Parses `HOST:PORT`, `:PORT`, `PORT` or `ss://HOST:PORT`. Without a host it is all addresses.
fn parse_listen_address(text: &str) -> Result<Target, Failure> {
    let hint = "--listen 8388 and '[::]:8388' accept IPv4 and IPv6 on port 8388";
    let failure = |why: &dyn std::fmt::Display| {
        Failure::new(FailureCode::Usage, format!("--listen {text}: {why}")).with_hint(hint)
    };
    let address = text.strip_prefix("ss://").unwrap_or(text);
    if address.contains("://") || address.contains(['@', '?', '#']) {
        return Err(failure(
            &"expected an address: the key and the method are those of this server",
        )
        .with_hint("`adit run URL` runs any listener"));
    }
    let address = address.strip_suffix('/').unwrap_or(address);
    let port = address.strip_prefix(':').unwrap_or(address);
    if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        let port = port.parse::<u16>().map_err(|why| failure(&why))?;
        let host = Host::Ip(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED));
        return Ok(Target { host, port });
    }
    address.parse::<Target>().map_err(|why| failure(&why))
}

/// Prints the URL of the stored key: `adit server url`.
fn print_url(
    typed: &args::ServerArgs,
    listen: &Target,
    method: Option<Method>,
    dir: &Path,
) -> CommandResult {
    let kept =
        stored_key::load_key(dir)?.filter(|kept| method.is_none_or(|method| method == kept.method));
    let Some(kept) = kept else {
        let of = method.map_or_else(String::new, |method| format!(" of {method}"));
        let what = format!("no key{of} is stored in {}", dir.display());
        return Err(Failure::new(FailureCode::Config, what).with_hint(
            "`adit server` generates one; --state DIR names the state folder of another user",
        ));
    };
    if listen.port == 0 {
        let what = "--listen with port 0 does not determine the port of the URL";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("use the port that the running server prints"));
    }
    let host = shown_host(typed.host.as_deref(), listen)?;
    let url = link::shadowsocks_link(kept.method, &kept.secret, &host, listen.port);
    if typed.json.json {
        let result = json!({
            "method": kept.method.name(),
            "keyId": plan_keys::key_id(kept.method, &kept.secret),
            "keyFile": kept.path.display().to_string(),
            "url": url,
        });
        json::print_result("server", &result);
        return Ok(());
    }
    println!("{url}");
    if typed.show_url && !typed.no_qr {
        println!("\n{}", qr_code::render_qr_code(&url)?);
    }
    Ok(())
}

/// Returns the command that prints the URL of the running server.
fn how_to_print_url(typed: &args::ServerArgs, dir: &Path, host: &Host, port: u16) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let mut command = format!(
        "adit server url --state {}",
        shell_quoted(&dir.to_string_lossy())
    );
    let listen = Target {
        host: host.clone(),
        port,
    };
    if listen.to_string() != args::SERVER_LISTEN {
        command.push_str(&format!(" --listen {}", shell_quoted(&listen.to_string())));
    }
    if let Some(host) = &typed.host {
        command.push_str(&format!(" --host {}", shell_quoted(host)));
    }
    command
}

/// Quotes a word for a shell's command line.
fn shell_quoted(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-:=@,+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

fn method_reason(
    picked: Option<&[fastest_method::MeasuredMethod]>,
    kept: &stored_key::StoredKey,
) -> String {
    let Some([best, rest @ ..]) = picked else {
        return if kept.is_new {
            String::new()
        } else {
            " (of the stored key)".to_owned()
        };
    };
    let others: Vec<String> = rest
        .iter()
        .map(|p| {
            format!(
                "{} {:.1}",
                p.method.name().trim_start_matches("2022-blake3-"),
                p.speed / 1e9
            )
        })
        .collect();
    format!(
        " (fastest here: {:.1} GB/s; {})",
        best.speed / 1e9,
        others.join(", ")
    )
}

/// Returns the host that clients use: the requested one, otherwise the listener's, otherwise the
/// address that this machine uses for outgoing traffic.
fn shown_host(asked: Option<&str>, listen: &Target) -> Result<Host, Failure> {
    if let Some(name) = asked {
        return Host::parse(name)
            .map_err(|e| Failure::new(FailureCode::Usage, format!("--host {name}: {e}")));
    }
    match &listen.host {
        Host::Ip(ip) if ip.is_unspecified() => Ok(Host::Ip(outgoing_address().unwrap_or(*ip))),
        other => Ok(other.clone()),
    }
}
