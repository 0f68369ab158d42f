//! `http_simple` and `http_post`: one request head and one response head, then raw bytes.

mod request;
mod response;
mod server;

pub(crate) use request::{HttpMethod, RequestHead, RequestTemplate};
pub(crate) use response::{HeadSkipper, response_head};
pub(crate) use server::RequestReader;

/// Maximum length of a head in bytes, as in ShadowsocksR's server.
const MAX_HEAD: usize = 65_536;

/// Returns the end of the head at the front of `bytes`: after the first blank line, searched from
/// `from` on.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(from + at + 4)
}
