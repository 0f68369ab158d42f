//! The container image: its configuration, and its program in the unpacked image, as the image's user.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::packages_under_test::BuiltPackages;
use crate::command::{CommandRun, descendants};
use crate::package::container::USER;
use crate::package::staging::sorted_files;
use crate::privilege::{PATH, privileged, spawn_privileged, wait_for};

/// Time for the program to start, and to end.
const TIME: Duration = Duration::from_secs(30);
/// The name of the program's log.
const LOG: &str = "image-program";

pub(super) fn check(packages: &BuiltPackages) -> Result<()> {
    let files = sorted_files(&packages.folder("container"))?;
    let archive = files.first().context("no image")?;
    let image = packages.work.join("image");
    fs::create_dir_all(&image)?;
    CommandRun::new("tar", ["-xf"])
        .args([archive.as_path(), Path::new("-C"), &image])
        .run_captured("image")?;
    let manifest = read_json(&image.join("manifest.json"))?;
    let layers = manifest.pointer("/0/Layers").and_then(Value::as_array);
    let layers = words(layers.context("no layers")?)?;
    ensure!(layers.len() == 1, "{} layers, not one", layers.len());
    let name = manifest.pointer("/0/Config").and_then(Value::as_str);
    let config = read_json(&image.join(name.context("no configuration")?))?;
    let config = &config["config"];
    ensure!(
        config["User"] == format!("{USER}:{USER}"),
        "the image's user is {}",
        config["User"]
    );
    let list = |name: &str| {
        let list = config.pointer(name).and_then(Value::as_array);
        words(list.with_context(|| format!("no {name}"))?)
    };
    let health = list("/Healthcheck/Test")?;
    let Some(("CMD", health)) = health
        .split_first()
        .map(|(kind, rest)| (kind.as_str(), rest))
    else {
        bail!("the health check needs a shell: {health:?}");
    };
    let start = [list("/Entrypoint")?, list("/Cmd")?].concat();

    let root = packages.work.join("image-root");
    fs::create_dir_all(&root)?;
    let layer = image.join(&layers[0]);
    let (layer, into) = (layer.to_string_lossy(), root.to_string_lossy());
    privileged("tar", &["-xpf", &layer, "-C", &into])?.run_captured("image-layer")?;
    let found = privileged("find", &[&into, "-type", "f", "-printf", "%P %m %U\n"])?
        .run_captured("image-files")?;
    let mut found: Vec<&str> = found.lines().collect();
    found.sort_unstable();
    let expected = ["adit 755 0", "etc/adit/adit.toml 644 0", "etc/passwd 644 0"];
    ensure!(found == expected, "the image contains {found:?}");

    let config = packages.work.join("image.toml");
    fs::write(
        &config,
        "[route.main]\nlisten = \"mixed://127.0.0.1:1080\"\n",
    )?;
    let place = root.join("etc/adit/adit.toml");
    privileged("cp", &[&config.to_string_lossy(), &place.to_string_lossy()])?.run_captured("cp")?;
    let mut container = RunningImage {
        root: &into,
        process: None,
    };
    ensure!(container.run(health).is_err(), "healthy before its start");
    container.start(&start)?;
    container.wait_until("the health check succeeds", |container| {
        container.run(health).is_ok()
    })?;
    container.stop()?;
    ensure!(container.run(health).is_err(), "healthy after its end");
    Ok(())
}

/// The program of an unpacked image, as the first process of a namespace, like in a container.
struct RunningImage<'a> {
    root: &'a str,
    process: Option<Child>,
}

impl RunningImage<'_> {
    /// The words of a command that runs as the image's user.
    fn words(&self, command: &[String]) -> Vec<String> {
        let user = format!("--userspec={USER}:{USER}");
        let enter = ["env", "-i", PATH, "chroot", &user, "--groups=", self.root];
        enter
            .iter()
            .map(|word| (*word).to_owned())
            .chain(command.iter().cloned())
            .collect()
    }

    /// Runs a command to its end.
    fn run(&self, command: &[String]) -> Result<String> {
        let words = self.words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        privileged(words[0], &words[1..])?.run_captured("image-health")
    }

    fn start(&mut self, command: &[String]) -> Result<()> {
        let script = "ip link set lo up && exec \"$@\"";
        let unshare = [
            "unshare",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            script,
            "sh",
        ];
        let program = self.words(command);
        let words = unshare
            .into_iter()
            .chain(program.iter().map(String::as_str));
        self.process = Some(spawn_privileged(&words.collect::<Vec<_>>(), LOG)?);
        Ok(())
    }

    /// Ends the program as a container manager does, and waits until it has ended.
    fn stop(&mut self) -> Result<()> {
        let id = self.program_id().context("the program has ended already")?;
        privileged("kill", &["-TERM", &id])?.run_captured("image-stop")?;
        self.wait_until("the program ends", |container| {
            let process = container.process.as_mut();
            process.is_none_or(|process| process.try_wait().is_ok_and(|status| status.is_some()))
        })
    }

    /// Returns the process ID of the program: the last descendant of the process that was started.
    fn program_id(&self) -> Option<String> {
        let started = self.process.as_ref()?.id();
        Some(descendants(started).first()?.to_string())
    }

    fn wait_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) -> Result<()> {
        wait_for(what, TIME, LOG, || Ok(done(self).then_some(())))
    }
}

impl Drop for RunningImage<'_> {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // `--kill-child` ends the program with it.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

fn words(list: &[Value]) -> Result<Vec<String>> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let words: Option<Vec<String>> = list.iter().map(word).collect();
    words.context("not a list of words")
}
