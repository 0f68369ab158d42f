//! Texts as input, plans or problems as output: what users write and what they read.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod carriers;
mod circles;
mod dns;
mod drawing;
mod endpoint;
mod files;
mod groups;
mod json_schema;
mod keyring_problems;
mod keyrings;
mod messages;
mod plans;
mod reference;
mod round_trip;
mod rule_sets;
mod secrets;
mod shadowsocks;
mod share_links;
mod shortcuts;
mod ssh_urls;
mod ssr;
