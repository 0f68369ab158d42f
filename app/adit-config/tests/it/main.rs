//! Texts as input, plans or problems as output: what users write and what they read.

mod carriers;
mod circles;
mod drawing;
mod endpoint;
mod files;
mod groups;
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
