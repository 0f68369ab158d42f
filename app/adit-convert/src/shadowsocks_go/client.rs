//! A client of shadowsocks-go: a hop.

use adit_config::text::{Problem, Secret, SecretText};
use zeroize::Zeroizing;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::server_entry;
use crate::toml_output::UrlBuilder;

/// A client: the hop it is, `None` for the direct way.
pub(super) fn read_client(
    fields: &mut ObjectFields<'_>,
    udp: bool,
    clerk: &mut ConversionContext<'_>,
) -> Result<Option<Zeroizing<String>>, ()> {
    let protocol = fields.string_field("protocol", clerk).unwrap_or_default();
    fields.get("mtu");
    if protocol == "direct" {
        return Ok(None);
    }
    let addresses =
        ["endpoint", "tcpAddress", "udpAddress"].map(|name| fields.string_field(name, clerk));
    if let [None, Some(tcp), Some(udp)] = addresses
        && tcp != udp
    {
        clerk.add_note(
            fields.field_path("udpAddress"),
            "UDP goes to the address of TCP",
        );
    }
    let path = fields.field_path("endpoint");
    let address = addresses.into_iter().flatten().next();
    let Some((host, Some(port))) =
        address.and_then(|text| server_entry::parse_host(text, &path, clerk))
    else {
        let title = format!("`{path}` is missing, or has no port");
        clerk.add_problem(Problem::without_place(title, "write `HOST:PORT`"));
        return Err(());
    };
    let mut url = match protocol {
        "socks5" | "http" => {
            let url = UrlBuilder::new(
                if protocol == "http" { "http" } else { "socks5" },
                Some(host),
                port,
            );
            add_proxy_login(url, fields, protocol, clerk)?
        }
        method if method.starts_with("2022-") || matches!(method, "none" | "plain") => {
            let mut key = Zeroizing::new(String::new());
            for identity in fields.strings_field("iPSKs", clerk) {
                key.push_str(identity);
                key.push(':');
            }
            key.push_str(fields.string_field("psk", clerk).unwrap_or_default());
            let secret = SecretText::Literal(Secret::from(key.as_str()));
            UrlBuilder::new("ss", Some(host), port).with_user(method, secret)
        }
        other => {
            let text = format!("protocol `{other}` is not known to this version; left out");
            clerk.add_note(fields.object_path().to_owned(), text);
            return Err(());
        }
    };
    if !udp && protocol != "http" {
        url.set_key("udp", "false");
    }
    Ok(Some(url.to_text()))
}

fn add_proxy_login(
    url: UrlBuilder,
    fields: &mut ObjectFields<'_>,
    protocol: &str,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, ()> {
    let Some(mut own) = fields.object_field(protocol, clerk) else {
        return Ok(url);
    };
    if own.bool_field("useTLS", clerk) == Some(true) {
        let path = own.field_path("useTLS");
        let text = "proxies behind TLS are not known to this version; the client is left out";
        clerk.add_note(path, text);
        return Err(());
    }
    let asked = ["enableUserPassAuth", "useBasicAuth"]
        .map(|name| own.bool_field(name, clerk) == Some(true))
        .contains(&true);
    let login = (
        own.string_field("username", clerk),
        own.string_field("password", clerk),
    );
    own.note_unread(&[], clerk);
    Ok(match login {
        (Some(user), Some(password)) if asked => {
            url.with_user(user, SecretText::Literal(Secret::from(password)))
        }
        _ => url,
    })
}
