//! kcptun as Debian ships it: tunnels over KCP, which only the suite `lossy` measures.

use super::{Kind, Programs, Source};

pub(super) const KIND: Kind = Kind {
    name: "kcptun",
    programs: &["kcptun-client", "kcptun-server"],
    version,
    // It is started with the link that it is measured on.
    recipe: |_, _| None,
    threads: None,
    relay_files: 2,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    programs.ask(&["--version"])
}
