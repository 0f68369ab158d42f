//! Texts of other programs in, adit's own or problems out.

mod classic;
mod conversion;
mod go;
mod lists;
mod ssr;
