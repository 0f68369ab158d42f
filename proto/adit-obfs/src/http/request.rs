//! A client's request head, with the first bytes of the stream in its URL.

use core::ops::{Range, RangeInclusive};

use adit_wire::{Entropy, Host, ProtocolError, Target};

use crate::ObfsParam;

/// Maximum number of bytes in the URL above the configured minimum.
const URL_SPREAD: u16 = 64;
/// Limits of the configured minimum: servers require 13 bytes, and real heads are short.
const URL_BYTES: RangeInclusive<usize> = 30..=256;

/// The user agents, one of which is chosen per process.
const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/127.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) \
     Version/17.5 Safari/605.1.15",
];

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpMethod {
    Get,
    Post,
}

/// The common parts of a client's requests.
pub(crate) struct RequestTemplate {
    verb: HttpMethod,
    /// At least one.
    hosts: Vec<Box<str>>,
    port: u16,
    headers: Option<Box<str>>,
    agent: Box<str>,
    url_bytes: usize,
}

impl RequestTemplate {
    pub(crate) fn new(
        verb: HttpMethod,
        param: &ObfsParam,
        server: &Target,
        url_bytes: usize,
        entropy: &mut dyn Entropy,
    ) -> Self {
        let hosts = match param.hosts() {
            [] => vec![host_field(&server.host)],
            hosts => hosts.to_vec(),
        };
        Self {
            verb,
            hosts,
            port: server.port,
            headers: param.header_text().map(Into::into),
            agent: (*pick_random(&AGENTS, entropy).unwrap_or(&AGENTS[0])).into(),
            url_bytes: url_bytes.clamp(*URL_BYTES.start(), *URL_BYTES.end()),
        }
    }

    /// Creates the head of one connection.
    pub(crate) fn new_head(&self, entropy: &mut dyn Entropy) -> RequestHead {
        let host = pick_random(&self.hosts, entropy).map_or("", |host| host);
        let boundary = match self.verb {
            HttpMethod::Post if self.headers.is_none() => Some(draw_boundary(entropy)),
            _ => None,
        };
        let (least, more) = (self.url_bytes, entropy.in_range(0, URL_SPREAD));
        RequestHead {
            verb: self.verb,
            fields: self.format_fields(host, boundary.as_deref()).into_bytes(),
            least,
            most: least + usize::from(more),
        }
    }

    /// Formats the rest of the head after the URL, up to the blank line.
    fn format_fields(&self, host: &str, boundary: Option<&str>) -> String {
        let mut out = format!(" HTTP/1.1\r\nHost: {host}");
        if self.port != 80 {
            out += &format!(":{}", self.port);
        }
        out += "\r\n";
        if let Some(headers) = &self.headers {
            out += headers;
            out += "\r\n\r\n";
            return out;
        }
        out += &format!("User-Agent: {}\r\n", self.agent);
        out += "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
                Accept-Language: en-US,en;q=0.8\r\n\
                Accept-Encoding: gzip, deflate\r\n";
        if let Some(boundary) = boundary {
            out += &format!("Content-Type: multipart/form-data; boundary={boundary}\r\n");
        }
        out += "DNT: 1\r\nConnection: keep-alive\r\n\r\n";
        out
    }

    #[cfg(test)]
    pub(crate) fn with_agent(mut self, agent: &str) -> Self {
        self.agent = agent.into();
        self
    }
}

fn host_field(host: &Host) -> Box<str> {
    match host {
        Host::Ip(ip) if ip.is_ipv6() => format!("[{ip}]").into(),
        Host::Ip(ip) => ip.to_string().into(),
        Host::Name(name) => name.as_str().into(),
    }
}

fn pick_random<'a, T>(of: &'a [T], entropy: &mut dyn Entropy) -> Option<&'a T> {
    let last = u16::try_from(of.len().saturating_sub(1)).unwrap_or(u16::MAX);
    // A single choice must not consume random numbers.
    match last {
        0 => of.first(),
        last => of.get(usize::from(entropy.in_range(0, last))),
    }
}

fn draw_boundary(entropy: &mut dyn Entropy) -> String {
    const SIGNS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut draw = || *pick_random(SIGNS, entropy).unwrap_or(&b'A');
    (0..32).map(|_| char::from(draw())).collect()
}

/// The head of one connection, to be written around the first bytes of the stream.
pub(crate) struct RequestHead {
    verb: HttpMethod,
    /// From the blank after the URL to the blank line.
    fields: Vec<u8>,
    /// A first payload that is not much longer is put into the URL completely.
    least: usize,
    /// Number of bytes of a longer first payload to put into the URL.
    most: usize,
}

impl RequestHead {
    const fn start_bytes(&self) -> &'static [u8] {
        match self.verb {
            HttpMethod::Get => b"GET /",
            HttpMethod::Post => b"POST /",
        }
    }

    /// Returns the number of the first payload's bytes to put into the URL.
    fn hidden_len(&self, payload: usize) -> usize {
        if payload > self.least + usize::from(URL_SPREAD) {
            self.most
        } else {
            payload
        }
    }

    /// Returns the room in front of the first payload: each byte in the URL takes three.
    pub(crate) fn seal_overhead(&self) -> usize {
        self.start_bytes().len() + 2 * (self.least + usize::from(URL_SPREAD)) + self.fields.len()
    }

    /// Moves the first bytes of `record[payload]` into a head in front of the others, which stay in
    /// place.
    pub(crate) fn seal_first(
        &self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let no_room = ProtocolError::NoRoom("a request head");
        let body = payload.start + self.hidden_len(payload.len());
        let hidden = record.get(payload.start..body).ok_or(no_room)?;
        let mut head = Vec::with_capacity(self.seal_overhead() + hidden.len());
        head.extend_from_slice(self.start_bytes());
        for byte in hidden {
            head.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
        head.extend_from_slice(&self.fields);
        let start = body.checked_sub(head.len()).ok_or(no_room)?;
        let place = record.get_mut(start..body).ok_or(no_room)?;
        place.copy_from_slice(&head);
        Ok(start..payload.end)
    }
}

const fn hex_digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + nibble - 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    fn requests(verb: HttpMethod, param: &str, server: &str) -> RequestTemplate {
        let param = ObfsParam::parse(param).unwrap();
        let server = server.parse().unwrap();
        RequestTemplate::new(verb, &param, &server, 30, &mut FixedEntropy::default())
            .with_agent("me")
    }

    fn sealed(request: &RequestHead, payload: &[u8]) -> Vec<u8> {
        let head = request.seal_overhead();
        let mut record = [&vec![0; head][..], payload].concat();
        let range = request.seal_first(&mut record, head..head + payload.len());
        record[range.unwrap()].to_vec()
    }

    #[test]
    fn short_payloads_hide_whole() {
        let requests = requests(HttpMethod::Get, "#X: y", "[2001:db8::1]:80");
        for (more, len, hidden) in [
            (0, 94, 94),
            (0, 95, 30),
            (64, 95, 94),
            (7, 9000, 37),
            (7, 0, 0),
        ] {
            let mut rng = FixedEntropy::new(u64::to_le_bytes(more));
            let wire = sealed(&requests.new_head(&mut rng), &vec![0xaf; len]);
            let head = format!(
                "GET /{} HTTP/1.1\r\nHost: [2001:db8::1]\r\nX: y\r\n\r\n",
                "%af".repeat(hidden)
            );
            assert_eq!(wire, [head.as_bytes(), &vec![0xaf; len - hidden]].concat());
        }
    }

    #[test]
    fn hosts_and_boundaries_are_drawn() {
        let requests = requests(HttpMethod::Post, "a.com,b.com,c.com", "1.2.3.4:8388");
        let mut rng = [1u64, 0, 26, 52].map(u64::to_le_bytes).concat();
        rng.resize(8 * 34, 0);
        let wire = sealed(&requests.new_head(&mut FixedEntropy::new(rng)), b"AB");
        let text = String::from_utf8(wire).unwrap();
        assert!(
            text.starts_with("POST /%41%42 HTTP/1.1\r\nHost: b.com:8388\r\nUser-Agent: me\r\n")
        );
        assert!(text.contains(&format!("boundary=Aa0{}\r\nDNT: 1\r\n", "A".repeat(29))));
    }
}
