//! A client of shadowsocks-go: a hop.

use adit_config::text::{Problem, Secret, SecretText};
use zeroize::Zeroizing;

use crate::clerk::Clerk;
use crate::fields::Fields;
use crate::server;
use crate::shape::Url;

/// A client: the hop it is, `None` for the direct way.
pub(super) fn read(
    fields: &mut Fields<'_>,
    udp: bool,
    clerk: &mut Clerk<'_>,
) -> Result<Option<Zeroizing<String>>, ()> {
    let protocol = fields.text("protocol", clerk).unwrap_or_default();
    fields.get("mtu");
    if protocol == "direct" {
        return Ok(None);
    }
    let addresses = ["endpoint", "tcpAddress", "udpAddress"].map(|name| fields.text(name, clerk));
    if let [None, Some(tcp), Some(udp)] = addresses
        && tcp != udp
    {
        clerk.note(fields.path("udpAddress"), "UDP goes to the address of TCP");
    }
    let path = fields.path("endpoint");
    let address = addresses.into_iter().flatten().next();
    let Some((host, Some(port))) = address.and_then(|text| server::host(text, &path, clerk)) else {
        let title = format!("`{path}` is missing, or has no port");
        clerk.problem(Problem::without_place(title, "write `HOST:PORT`"));
        return Err(());
    };
    let mut url = match protocol {
        "socks5" | "http" => {
            let url = Url::new(
                if protocol == "http" { "http" } else { "socks5" },
                Some(host),
                port,
            );
            proxy_login(url, fields, protocol, clerk)?
        }
        method if method.starts_with("2022-") || matches!(method, "none" | "plain") => {
            let mut key = Zeroizing::new(String::new());
            for identity in fields.texts("iPSKs", clerk) {
                key.push_str(identity);
                key.push(':');
            }
            key.push_str(fields.text("psk", clerk).unwrap_or_default());
            let secret = SecretText::Literal(Secret::from(key.as_str()));
            Url::new("ss", Some(host), port).user(method, secret)
        }
        other => {
            let text = format!("protocol `{other}` is not known to this version; left out");
            clerk.note(fields.whole().to_owned(), text);
            return Err(());
        }
    };
    if !udp && protocol != "http" {
        url.set("udp", "false");
    }
    Ok(Some(url.text()))
}

fn proxy_login(
    url: Url,
    fields: &mut Fields<'_>,
    protocol: &str,
    clerk: &mut Clerk<'_>,
) -> Result<Url, ()> {
    let Some(mut own) = fields.object(protocol, clerk) else {
        return Ok(url);
    };
    if own.flag("useTLS", clerk) == Some(true) {
        let path = own.path("useTLS");
        let text = "proxies behind TLS are not known to this version; the client is left out";
        clerk.note(path, text);
        return Err(());
    }
    let asked = ["enableUserPassAuth", "useBasicAuth"]
        .map(|name| own.flag(name, clerk) == Some(true))
        .contains(&true);
    let login = (own.text("username", clerk), own.text("password", clerk));
    own.finish(&[], clerk);
    Ok(match login {
        (Some(user), Some(password)) if asked => {
            url.user(user, SecretText::Literal(Secret::from(password)))
        }
        _ => url,
    })
}
