//! `obfs_param`: hosts to name and header text (clients), hosts to accept or a time window
//! (servers).

/// Maximum length of a parameter in bytes: all of it may end up in the headroom of a record.
const MAX_PARAM: usize = 2048;
/// Maximum clock skew of a client of the TLS kinds in seconds, unless the parameter names another: a day.
pub(crate) const DEFAULT_TIME_WINDOW: u32 = 86_400;
/// Maximum length of a host name in bytes (RFC 1035).
const MAX_HOST: usize = 255;

/// A parsed `obfs_param`: `host1,host2,...[#header text]`.
///
/// The part in use depends on the kind: HTTP kinds use hosts and header text, TLS kinds use hosts
/// (a client) or the number (a server), and `go_quiet` uses the first host as its server name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObfsParam {
    hosts: Vec<Box<str>>,
    headers: Option<Box<str>>,
    window: Option<u32>,
}

/// The reason a parameter cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The text is too long.
    #[error("the obfs parameter is longer than {MAX_PARAM} bytes")]
    TooLong,
    /// A host is too long for a name.
    #[error("a host in the obfs parameter is longer than {limit} bytes")]
    HostTooLong {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// A host contains a blank or a control character, which would end its field.
    #[error("a host in the obfs parameter contains a blank or control character")]
    HostByte,
    /// `go_quiet` without a password.
    #[error("go_quiet needs a key")]
    NoKey,
}

impl ObfsParam {
    /// Parses the text; an empty text is the default.
    ///
    /// # Errors
    ///
    /// Fails if the text or a host is too long, or if a host contains a blank or a control
    /// character.
    pub fn parse(text: &str) -> Result<Self, ParamError> {
        if text.len() > MAX_PARAM {
            return Err(ParamError::TooLong);
        }
        let (hosts, headers) = match text.split_once('#') {
            Some((hosts, headers)) => (hosts, header_lines(headers)),
            None => (text, None),
        };
        let hosts = hosts.split(',').map(str::trim).filter(|h| !h.is_empty());
        let hosts = hosts.map(check_host).collect::<Result<_, _>>()?;
        Ok(Self {
            hosts,
            headers,
            window: text.trim().parse().ok(),
        })
    }

    /// Returns the hosts, in order.
    #[must_use]
    pub fn hosts(&self) -> &[Box<str>] {
        &self.hosts
    }

    /// Returns the lines that replace the default headers, without the end of the last line.
    pub(crate) fn header_text(&self) -> Option<&str> {
        self.headers.as_deref()
    }

    /// Returns the time window in seconds, if the parameter is a number.
    pub(crate) const fn time_window(&self) -> Option<u32> {
        self.window
    }
}

fn check_host(text: &str) -> Result<Box<str>, ParamError> {
    if text.len() > MAX_HOST {
        return Err(ParamError::HostTooLong { limit: MAX_HOST });
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(ParamError::HostByte);
    }
    Ok(text.into())
}

/// Splits the text into lines at `\n` (two characters) and line feeds. Empty lines are omitted: the
/// first one would end the head, and the text after it would be taken for data.
fn header_lines(text: &str) -> Option<Box<str>> {
    let text = text.replace("\\n", "\n");
    let lines: Vec<&str> = text
        .split(['\r', '\n'])
        .filter(|line| !line.is_empty())
        .collect();
    (!lines.is_empty()).then(|| lines.join("\r\n").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_headers() {
        let param = ObfsParam::parse("a.com, b.com,,#X: 1\\nY: 2\n\r\nZ: 3\\n\\n").unwrap();
        assert_eq!(param.hosts(), ["a.com".into(), "b.com".into()]);
        assert_eq!(param.header_text(), Some("X: 1\r\nY: 2\r\nZ: 3"));
        assert_eq!(ObfsParam::parse(""), Ok(ObfsParam::default()));
        assert_eq!(ObfsParam::parse("a#\\n").unwrap().header_text(), None);
    }

    #[test]
    fn a_number_is_a_window() {
        assert_eq!(ObfsParam::parse("300").unwrap().time_window(), Some(300));
        assert_eq!(ObfsParam::parse("0").unwrap().time_window(), Some(0));
        assert_eq!(ObfsParam::parse("a.com").unwrap().time_window(), None);
    }

    #[test]
    fn refuses_what_would_break_a_head() {
        assert_eq!(ObfsParam::parse("a b"), Err(ParamError::HostByte));
        assert_eq!(ObfsParam::parse("a\r\nb"), Err(ParamError::HostByte));
        let limit = MAX_HOST;
        assert_eq!(
            ObfsParam::parse(&"a".repeat(256)),
            Err(ParamError::HostTooLong { limit })
        );
        assert_eq!(
            ObfsParam::parse(&"a,".repeat(1025)),
            Err(ParamError::TooLong)
        );
    }
}
