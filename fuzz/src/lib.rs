//! The code that the targets share.
//!
//! An input is a plan for its own splitting, followed by the bytes: [`SplitInput`]. Codecs that
//! require a key receive their bytes through [`forged_wire`], which seals the fuzzer's content:
//! otherwise no code behind the first tag would ever be reached.

#![forbid(unsafe_code)]

mod action_script;
pub mod forged_wire;
pub mod obfs_pair;
pub mod outbounds;
pub mod rules;
pub mod ssr_pair;
pub mod user_fixture;

use std::fmt::Debug;
use std::io;
use std::path::Path;

use adit_config::{FileText, Plan, Sources, explain_plan};
use adit_wire::{Entropy, UnixTime};
use zeroize::Zeroizing;

pub use action_script::ActionScript;

/// The wall clock of all targets.
pub const NOW: UnixTime = UnixTime(1_700_000_000);

/// An input that arrives in pieces.
#[derive(Debug, Clone)]
pub struct SplitInput<'a> {
    /// Sizes of the pieces, repeated indefinitely.
    pub sizes: Vec<usize>,
    /// The bytes that arrive.
    pub bytes: &'a [u8],
}

impl<'a> SplitInput<'a> {
    /// Parses an input. The first byte is the number of sizes that follow it (at most seven; none
    /// means one byte at a time); a size of 0 means all bytes at once.
    #[must_use]
    pub fn new(input: &'a [u8]) -> Self {
        let (count, rest) = input.split_first().unwrap_or((&0, &[]));
        let count = usize::from(count % 8).min(rest.len());
        let (sizes, bytes) = rest.split_at(count);
        let size = |&size: &u8| {
            if size == 0 {
                usize::MAX
            } else {
                usize::from(size)
            }
        };
        let mut sizes: Vec<usize> = sizes.iter().map(size).collect();
        if sizes.is_empty() {
            sizes.push(1);
        }
        Self { sizes, bytes }
    }

    /// Runs the body over the bytes in these pieces and in one piece, and checks that the outcome
    /// is the same.
    pub fn assert_split_independent<T: PartialEq + Debug>(
        &self,
        run: impl Fn(&[u8], &[usize]) -> T,
    ) -> T {
        let whole = run(self.bytes, &[usize::MAX]);
        let split = run(self.bytes, &self.sizes);
        assert_eq!(split, whole, "split {:?}", self.sizes);
        whole
    }
}

/// Splits off one byte that steers the target.
#[must_use]
pub fn split_flags(input: &[u8]) -> (u8, &[u8]) {
    input
        .split_first()
        .map_or((0, input), |(first, rest)| (*first, rest))
}

/// Randomness of zeros: every run is the same, and salts are known.
#[derive(Debug, Clone, Copy)]
pub struct ZeroEntropy;

impl Entropy for ZeroEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        out.fill(0);
    }
}

/// Pseudorandom numbers, the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct SeededRng(pub u64);

impl Entropy for SeededRng {
    fn fill(&mut self, out: &mut [u8]) {
        for piece in out.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            piece.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..piece.len()]);
        }
    }
}

/// Changes one byte of `wire`, which is not empty: the one at `place` of 65,536 parts of its
/// length. Returns its index.
pub fn alter_byte(wire: &mut [u8], place: u16, flip: u8) -> usize {
    let at = usize::from(place) * wire.len() / 65_536;
    wire[at] ^= flip.max(1);
    at
}

/// A server with one user and one password, or without users.
#[derive(Debug, Clone, Copy)]
pub struct SingleUserAuth {
    /// True if a login is required.
    pub required: bool,
}

impl SingleUserAuth {
    fn is_valid_login(user: &[u8], password: &[u8]) -> bool {
        user == b"user" && password == b"pw"
    }
}

impl adit_socks::Credentials for SingleUserAuth {
    fn is_required(&self) -> bool {
        self.required
    }
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        Self::is_valid_login(user, password)
    }
}

impl adit_http::server::BasicAuth for SingleUserAuth {
    fn is_required(&self) -> bool {
        self.required
    }
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        Self::is_valid_login(user, password)
    }
}

/// A machine with a single file and a single variable.
#[derive(Debug, Clone, Copy)]
pub struct MinimalSources;

impl Sources for MinimalSources {
    fn read_file(&self, path: &Path) -> io::Result<FileText> {
        if path.file_name().is_some_and(|name| name == "f") {
            let text = Zeroizing::new("user:pw\n".to_owned());
            return Ok(FileText {
                text,
                readable_by_others: false,
            });
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>> {
        (name == "V").then(|| Zeroizing::new("AAECAwQFBgcICQoLDA0ODw==".to_owned()))
    }
}

/// Checks that a configuration file is a plan, or a list of problems with places in it.
pub fn check_config_file(text: &str) {
    match Plan::from_toml_with(text, "adit.toml", &MinimalSources) {
        Ok(plan) => drop(explain_plan(&plan)),
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                let shown = problem.to_string();
                assert!(!shown.is_empty());
                let lines = text.lines().count().max(1);
                assert!(
                    problem.place.is_none_or(|place| place.line <= lines + 1),
                    "{shown}"
                );
            }
        }
    }
}
