//! Texts in, plans or problems out: what a user writes and what a user reads.

mod carriers;
mod circles;
mod drawing;
mod endpoint;
mod files;
mod keyring_problems;
mod keyrings;
mod messages;
mod plans;
mod reference;
mod round_trip;
mod secrets;
mod shadowsocks;
mod share_links;
mod shortcuts;
mod ssh_urls;
mod ssr;
