//! `cargo xtask link`: a lossy link by hand, with two named network namespaces at its ends.
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
    //! The command where there are namespaces.

    use std::time::Duration;

    use adit_link::{Counts, FAR, Link, NEAR, Namespace, Path};
    use anyhow::{Context, Result};
    use clap::Parser;
    use nix::sys::signal::{SigSet, Signal};

    /// A slow and lossy link between the network namespaces `adit-near` (10.77.0.1) and `adit-far`
    /// (10.77.0.2), until Ctrl-C. SIGUSR1 cuts it, and heals it again.
    #[derive(Debug, Parser)]
    #[command(name = "cargo xtask link", bin_name = "cargo xtask link")]
    struct Args {
        /// Milliseconds from one end to the other and back
        #[arg(long, value_name = "MS", default_value_t = 50)]
        rtt: u64,
        /// Per cent of packets lost in each direction
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = share)]
        loss: f64,
        /// Per cent that come twice
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = share)]
        doubled: f64,
        /// Per cent that come 5 ms late, behind later ones
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = share)]
        late: f64,
        /// Mbit/s; 0 is without limit
        #[arg(long, value_name = "MBIT", default_value_t = 0)]
        rate: u64,
        /// Milliseconds a packet may wait for the rate before it is dropped
        #[arg(long, value_name = "MS", default_value_t = 50)]
        queue: u64,
        /// Segments of TCP travel in groups, which costs less CPU; not with losses
        #[arg(long)]
        offload: bool,
        /// Decides which packets are lost
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    }

    fn share(text: &str) -> Result<f64, String> {
        let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
        let whole = (0.0..=100.0).contains(&value);
        whole
            .then_some(value)
            .ok_or_else(|| "not 0 to 100".to_owned())
    }

    /// Tenths of a per cent.
    fn thousandths(percent: f64) -> u16 {
        (percent * 10.0).round().clamp(0.0, 1000.0) as u16
    }

    pub(super) fn run() -> Result<()> {
        let args = Args::parse();
        let mut path = Path::new(Duration::from_millis(args.rtt), thousandths(args.loss))
            .at(args.rate * 1_000_000, Duration::from_millis(args.queue));
        (path.doubled, path.late) = (thousandths(args.doubled), thousandths(args.late));
        path.offload = args.offload;
        // Before there are threads, so that none of them takes a signal.
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGUSR1]
            .into_iter()
            .collect();
        signals.thread_block()?;
        let link = Link::start(path, args.seed)?;
        let _near = Named::attach("adit-near", link.near())?;
        let _far = Named::attach("adit-far", link.far())?;
        println!("ready: `ip netns exec adit-near` has {NEAR}, `ip netns exec adit-far` has {FAR}");
        let mut cut = false;
        while signals.wait()? == Signal::SIGUSR1 {
            cut = !cut;
            link.cut(cut);
            println!("{}", if cut { "cut" } else { "healed" });
        }
        let Counts { there, back } = link.counts();
        println!("there: {there:?}\nback: {back:?}");
        Ok(())
    }

    /// A name that `ip netns` knows, as long as this lives.
    struct Named(&'static str);

    impl Named {
        fn attach(name: &'static str, space: &Namespace) -> Result<Self> {
            // A thread inside stands for the namespace while the name is put on it.
            let attach = || {
                let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
                space.ip(&format!("netns attach {name} {thread}"))
            };
            let hint = || format!("`ip netns del {name}` removes what another left");
            space.enter(attach).with_context(hint)?;
            Ok(Self(name))
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            let gone = std::process::Command::new("ip")
                .args(["netns", "del", self.0])
                .status();
            if !gone.is_ok_and(|status| status.success()) {
                eprintln!("warning: the namespace {} could not be removed", self.0);
            }
        }
    }
}
