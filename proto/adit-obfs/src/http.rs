//! `http_simple` and `http_post`: one request head and one response head, then raw bytes.

mod request;
mod response;
mod server;

pub(crate) use request::{Request, Requests, Verb};
pub(crate) use response::{Skip, response_head};
pub(crate) use server::RequestReader;

/// The longest head, in bytes: what ShadowsocksR's server waits for.
const MAX_HEAD: usize = 65_536;

/// Where the head ends that begins at the front of `bytes`: behind the first blank line, looked
/// for from `from` on.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(from + at + 4)
}
