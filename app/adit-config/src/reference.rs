//! Help and reference, generated from the tables of keys.

use core::fmt::Write;

use crate::schema::{EndpointRole, EndpointRoles, SchemeParam};
use crate::scheme::{CARRIERS, Carrier, SchemeWithCarrier, schemes};

/// Returns the output of `adit help SCHEME`: the form, and every key with type and default. Returns
/// `None` if the text is not a scheme.
#[must_use]
pub fn scheme_help(scheme: &str) -> Option<String> {
    scheme.parse().ok().map(written_scheme_help)
}

/// Returns the grammar and all schemes, each in a few lines.
#[must_use]
pub fn schemes_overview() -> String {
    let mut text = String::from(
        "An endpoint is a URL:\n\n  \
         dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=val&...][#name]\n\n\
         A secret is @FILE, $NAME of an environment variable, or the secret itself.\n\
         The first endpoint listens, the others are the chain, left to right.\n",
    );
    for scheme in schemes() {
        let _ = write!(
            text,
            "\n  {}\n      {}\n",
            scheme.form,
            wrap_lines(&format!("{}: {}", scheme.roles, scheme.doc), "      "),
        );
    }
    for carrier in CARRIERS {
        let _ = write!(
            text,
            "\n  DIALECT+{}://...\n      {}\n",
            carrier.name,
            wrap_lines(
                &format!(
                    "carrier of {}: {}",
                    carried_scheme_names(carrier),
                    carrier.doc
                ),
                "      "
            ),
        );
    }
    text.push_str("\n`adit help SCHEME` lists the keys of one.\n");
    text
}

/// Returns the names of the schemes that a carrier can carry.
fn carried_scheme_names(carrier: &'static Carrier) -> String {
    let names = carrier.carried_schemes().map(|scheme| scheme.name);
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the help on a scheme, with its carrier if there is one.
fn written_scheme_help(written: SchemeWithCarrier) -> String {
    let scheme = written.scheme;
    let form = written.url_form(EndpointRole::Listener);
    let mut text = format!("{form}\n\n  {}\n", wrap_lines(scheme.doc, "  "));
    if let Some(carrier) = written.carrier {
        let _ = write!(text, "\n  {}\n", wrap_lines(carrier.doc, "  "));
    }
    for (name, list) in (scheme.extra_lists)() {
        let _ = write!(
            text,
            "\n  {}\n",
            wrap_lines(&format!("{name}: {list}."), "  ")
        );
    }
    let _ = write!(text, "\n  used as: {}\n", written.roles());
    if let Some(carrier) = written.carrier {
        write_keys(
            &mut text,
            &format!("Keys of the carrier `{}`", carrier.name),
            written.roles(),
            carrier.params,
        );
    }
    let title = match written.carrier {
        Some(_) => format!("Keys of `{scheme}`"),
        None => "Keys".to_owned(),
    };
    write_keys(&mut text, &title, written.roles(), scheme.params);
    text
}

/// Appends keys with type, meaning and default under a title.
fn write_keys(text: &mut String, title: &str, roles: EndpointRoles, params: &[SchemeParam]) {
    if !params.is_empty() {
        let _ = write!(text, "\n{title}, written as ?key=value&key=value:\n");
    }
    for param in params {
        let setting = param.setting;
        let _ = write!(
            text,
            "\n  {}={}\n      {}\n      default: {}",
            setting.name(),
            setting.type_name(),
            wrap_lines(setting.doc(), "      "),
            setting.default_text(),
        );
        if let Some(alias) = setting.alias() {
            let _ = write!(text, "; also: {alias}");
        }
        if param.roles != roles {
            let _ = write!(text, "; for: {}", param.roles);
        }
        text.push('\n');
    }
}

/// Returns the reference of all schemes as Markdown.
#[must_use]
pub fn markdown_reference() -> String {
    let mut page = String::from(
        "# Endpoints\n\n\
         `dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=value&…][#name]`\n\n\
         A secret is `@FILE`, `$NAME` of an environment variable, or the secret itself. \
         A duration is a whole number with `ms`, `s`, `m`, `h` or `d`.\n",
    );
    for scheme in schemes() {
        let _ = write!(
            page,
            "\n## `{}`\n\n`{}`\n\n{}\n",
            scheme.name, scheme.form, scheme.doc,
        );
        for (name, list) in (scheme.extra_lists)() {
            let _ = write!(page, "\n{name}: `{}`.\n", list.replace(", ", "`, `"));
        }
        let _ = write!(page, "\nUsed as: {}.\n", scheme.roles);
        write_key_table(&mut page, scheme.params);
    }
    for carrier in CARRIERS {
        let _ = write!(
            page,
            "\n## `+{}`\n\n{}\n\nCarries: {}.\n",
            carrier.name,
            carrier.doc,
            carried_scheme_names(carrier),
        );
        write_key_table(&mut page, carrier.params);
    }
    page
}

/// Appends keys as a Markdown table.
fn write_key_table(page: &mut String, params: &[SchemeParam]) {
    if !params.is_empty() {
        page.push_str("\n| key | type | default | for | meaning |\n|---|---|---|---|---|\n");
        for param in params {
            let setting = param.setting;
            let also = setting
                .alias()
                .map_or_else(String::new, |alias| format!(", also `{alias}`"));
            let _ = writeln!(
                page,
                "| `{}`{also} | {} | {} | {} | {} |",
                setting.name(),
                setting.type_name().replace('|', "\\|"),
                setting.default_text(),
                param.roles,
                setting.doc(),
            );
        }
    }
}

/// Wraps a text into lines of at most 72 bytes, all but the first indented.
fn wrap_lines(text: &str, indent: &str) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > 72 {
            let _ = write!(wrapped, "\n{indent}");
            column = 0;
        } else if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += word.len();
    }
    wrapped
}
