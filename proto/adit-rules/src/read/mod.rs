//! Readers of lists in the formats of other programs.
//!
//! Every reader takes the whole document as bytes and [`Limits`], and returns a [`Loaded`] set. An entry
//! that is not understood does not fail the document: it is skipped with a [`Note`] that says where it is.
//! A rule of several conditions is skipped as a whole if one of them is not understood, because it would
//! match more requests without it.
//!
//! | format | function |
//! |---|---|
//! | sing-box, source (JSON) | [`read_sing_box_json`] |
//! | sing-box, binary (`.srs`) | [`read_srs`] |
//! | mihomo and Clash, text and YAML | [`read_clash`] |
//! | v2ray `geosite.dat` | [`read_geosite`] |
//! | v2ray `geoip.dat` | [`read_geoip`] |
//! | MaxMind `mmdb` of countries | [`read_mmdb`] |
//! | hosts | [`read_hosts`] |
//! | Adblock, names only | [`read_adblock`] |
//!
//! [`Format`] has them by name, and detects the one of a document.

mod adblock;
mod clash;
mod clash_rule;
mod format;
mod geo;
mod hosts;
mod json;
mod limits;
mod mmdb;
mod mmdb_data;
mod protobuf;
mod sing_box;
mod sing_box_json;
mod srs;
mod succinct;
mod tally;
mod text;
mod yaml;

pub use adblock::read_adblock;
pub use clash::{ClashBehavior, read_clash};
pub use format::Format;
pub use geo::{read_geoip, read_geosite};
pub use hosts::read_hosts;
pub use limits::{Limits, Loaded, Note, NoteKind, Place, ReadError};
pub use mmdb::read_mmdb;
pub use sing_box_json::read_sing_box_json;
pub use srs::read_srs;
