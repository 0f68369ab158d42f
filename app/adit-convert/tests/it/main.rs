//! Texts of other programs in, adit's own or problems out.

mod conversion;
mod go;
mod lists;
mod outbounds;
mod shadowsocks_json;
mod ssr;
