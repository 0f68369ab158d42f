//! `cargo xtask link`: a lossy link started by hand, with a named network namespace at each end.
//!
//! ```text
//! cargo xtask link --rtt 50 --loss 5 --rate 100 &
//! ip netns exec adit-far  kcptun-server …
//! ip netns exec adit-near adit kcp client -r 10.77.0.2:29900 …
//! ```

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("error: network namespaces and TUN devices need Linux");
    std::process::ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
mod linux {
    //! The command, on systems with network namespaces.

    use std::time::Duration;

    use adit_link::{FAR, LinkCounts, LinkPath, NEAR, NamespaceLink, NetworkNamespace};
    use anyhow::{Context, Result};
    use clap::Parser;
    use nix::sys::signal::{SigSet, Signal};

    /// A slow, lossy link between the network namespaces `adit-near` (10.77.0.1) and `adit-far`
    /// (10.77.0.2), until Ctrl-C. SIGUSR1 cuts the link, and restores it again.
    #[derive(Debug, Parser)]
    #[command(name = "cargo xtask link", bin_name = "cargo xtask link")]
    struct Args {
        /// Round-trip time, in milliseconds
        #[arg(long, value_name = "MS", default_value_t = 50)]
        rtt: u64,
        /// Packet loss in each direction, in percent
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = parse_percent)]
        loss: f64,
        /// Packets delivered twice, in percent
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = parse_percent)]
        doubled: f64,
        /// Packets delivered 5 ms late, after later ones, in percent
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = parse_percent)]
        late: f64,
        /// Rate in Mbit/s; 0 means unlimited
        #[arg(long, value_name = "MBIT", default_value_t = 0)]
        rate: u64,
        /// Maximum time a packet waits for the rate before it is dropped, in milliseconds
        #[arg(long, value_name = "MS", default_value_t = 50)]
        queue: u64,
        /// Let TCP segments travel in groups, which costs less CPU; not possible with losses
        #[arg(long)]
        offload: bool,
        /// Seed that decides which packets are lost
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    }

    fn parse_percent(text: &str) -> Result<f64, String> {
        let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
        let whole = (0.0..=100.0).contains(&value);
        whole
            .then_some(value)
            .ok_or_else(|| "not between 0 and 100".to_owned())
    }

    /// Converts percent to tenths of a percent.
    fn to_per_mille(percent: f64) -> u16 {
        (percent * 10.0).round().clamp(0.0, 1000.0) as u16
    }

    pub(super) fn run() -> Result<()> {
        let args = Args::parse();
        let mut path = LinkPath::new(Duration::from_millis(args.rtt), to_per_mille(args.loss))
            .with_rate(args.rate * 1_000_000, Duration::from_millis(args.queue));
        (path.doubled, path.late) = (to_per_mille(args.doubled), to_per_mille(args.late));
        path.offload = args.offload;
        // Signals are blocked before the first thread is started, so that no thread receives one.
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGUSR1]
            .into_iter()
            .collect();
        signals.thread_block()?;
        let link = NamespaceLink::start(path, args.seed)?;
        let _near = NamedNamespace::attach("adit-near", link.near())?;
        let _far = NamedNamespace::attach("adit-far", link.far())?;
        println!("ready: `ip netns exec adit-near` has {NEAR}, `ip netns exec adit-far` has {FAR}");
        let mut cut = false;
        while signals.wait()? == Signal::SIGUSR1 {
            cut = !cut;
            link.set_cut(cut);
            println!("{}", if cut { "cut" } else { "healed" });
        }
        let LinkCounts {
            near_to_far: there,
            far_to_near: back,
        } = link.counts();
        println!("near to far: {there:?}\nfar to near: {back:?}");
        Ok(())
    }

    /// A namespace with a name for `ip netns`; the name is removed on drop.
    struct NamedNamespace(&'static str);

    impl NamedNamespace {
        fn attach(name: &'static str, space: &NetworkNamespace) -> Result<Self> {
            // `ip netns attach` needs a thread that is inside the namespace while the name is
            // attached.
            let attach = || {
                let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
                space.run_ip(&format!("netns attach {name} {thread}"))
            };
            let hint = || format!("`ip netns del {name}` removes a name that an earlier run left");
            space.run_inside(attach).with_context(hint)?;
            Ok(Self(name))
        }
    }

    impl Drop for NamedNamespace {
        fn drop(&mut self) {
            let gone = std::process::Command::new("ip")
                .args(["netns", "del", self.0])
                .status();
            if !gone.is_ok_and(|status| status.success()) {
                eprintln!("warning: cannot remove the namespace {}", self.0);
            }
        }
    }
}
