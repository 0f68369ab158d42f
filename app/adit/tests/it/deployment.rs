//! The files for fleets in `packaging/fleet`: rendered, and checked by the tools of their systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::TempFolder;
use adit_interop::external_tools::{self, peer_path};
use serde_json::Value;

use crate::setup::{bin, says};

const LIMIT: Duration = Duration::from_secs(120);
/// The oldest and the newest version of Kubernetes that the files are checked for.
const KUBERNETES: [&str; 2] = ["1.29", "1.37"];

fn fleet(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/fleet")
        .join(path)
}

/// Returns the output of a program that succeeds.
fn prints(program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(fleet(""));
    let done = external_tools::run_to_end(command, LIMIT).unwrap();
    done.expect_success()
        .unwrap_or_else(|why| panic!("{}: {why}", program.display()))
}

/// Returns the documents of a text in YAML.
fn documents(folder: &TempFolder, yaml: &str) -> Vec<Value> {
    let file = folder.write_file("documents.yaml", yaml).unwrap();
    let script =
        "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let python = peer_path("python/bin/python");
    let json = prints(&python, &["-c", script, file.to_str().unwrap()]);
    serde_json::from_str(&json).unwrap()
}

fn rendered(name: &str) -> String {
    prints(
        &peer_path("kustomize"),
        &[
            "build",
            fleet(&format!("kustomize/{name}")).to_str().unwrap(),
        ],
    )
}

fn find<'d>(documents: &'d [Value], kind: &str, name: &str) -> &'d Value {
    let found = documents
        .iter()
        .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Kubernetes would accept the manifests, in the oldest and the newest version.
#[test]
fn kubernetes_accepts_the_manifests() {
    let folder = TempFolder::new("kubernetes").unwrap();
    let python = peer_path("python/bin/python");
    for (name, kinds) in [("base", 6), ("store", 10)] {
        let text = rendered(name);
        let all = documents(&folder, &text);
        assert_eq!(all.len(), kinds + 1, "{name}: {text}");
        let file = folder.write_file(&format!("{name}.yaml"), &text).unwrap();
        for version in KUBERNETES {
            let module = ["-m", "kubernetes_validate", "--strict", "-k", version];
            let args = [&module[..], &[file.to_str().unwrap()]].concat();
            let checked = prints(&python, &args);
            says(&checked, &["passed"]);
        }
        // The check itself finds mistakes.
        let broken = text.replace(
            "terminationGracePeriodSeconds: 3900",
            "terminationGracePeriodSeconds: long",
        );
        let file = folder.write_file("broken.yaml", &broken).unwrap();
        let mut command = Command::new(&python);
        command.args(["-m", "kubernetes_validate", "--strict", "-k", KUBERNETES[1]]);
        command.arg(&file);
        let refused = external_tools::run_to_end(command, LIMIT).unwrap();
        assert_ne!(refused.code, Some(0), "{}", refused.output);
    }
}

/// A node is drained before it is stopped, is asked whether it is ready, and has its own membership.
#[test]
fn nodes_in_kubernetes_are_drained_and_asked() {
    let folder = TempFolder::new("kubernetes-nodes").unwrap();
    let all = documents(&folder, &rendered("store"));
    let nodes = find(&all, "StatefulSet", "adit");
    let pod = &nodes["spec"]["template"]["spec"];
    let node = &pod["containers"][0];
    let words = |value: &Value| {
        let each = value["exec"]["command"].as_array().unwrap().iter();
        each.map(|word| word.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        words(&node["readinessProbe"]),
        "/adit status --ready --admin /run/adit/api.sock"
    );
    says(
        &words(&node["lifecycle"]["preStop"]),
        &["/adit fleet drain --wait"],
    );
    // An hour of `[run] drain`, and the hook.
    assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(3600));
    let mounts = node["volumeMounts"].as_array().unwrap();
    let membership = mounts.iter().find(|it| it["name"] == "membership").unwrap();
    assert_eq!(membership["subPathExpr"], "$(POD_NAME).json");
    let volumes = pod["volumes"].as_array().unwrap();
    let secret = volumes
        .iter()
        .find(|it| it["name"] == "membership")
        .unwrap();
    assert_eq!(secret["secret"]["secretName"], "adit-membership");
    let confined = &node["securityContext"];
    assert_eq!(confined["readOnlyRootFilesystem"], true);
    assert_eq!(confined["capabilities"]["drop"][0], "ALL");
    // No mount lies within another one, where its folder could not be made.
    let paths: Vec<&str> = mounts
        .iter()
        .filter_map(|it| it["mountPath"].as_str())
        .collect();
    for path in &paths {
        let below = format!("{path}/");
        assert!(
            !paths.iter().any(|other| other.starts_with(&below)),
            "{path}"
        );
    }
    let budget = find(&all, "PodDisruptionBudget", "adit");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    let selector = &nodes["spec"]["selector"]["matchLabels"];
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], selector);
    find(&all, "StatefulSet", "adit-store");
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains("adit-join:"), "{text}");
}

/// Two nodes and a store server without a port.
#[test]
fn the_compose_file_has_two_nodes_and_no_port_for_the_store() {
    let folder = TempFolder::new("compose").unwrap();
    let text = fs::read_to_string(fleet("compose/compose.yaml")).unwrap();
    let all = documents(&folder, &text);
    let services = &all[0]["services"];
    for name in ["node-a", "node-b"] {
        let node = &services[name];
        assert_eq!(
            node["depends_on"]["store"]["condition"], "service_healthy",
            "{name}"
        );
        says(
            &node["healthcheck"]["test"].to_string(),
            &["status", "--ready"],
        );
        assert_eq!(node["stop_grace_period"], "65m");
        let volumes = node["volumes"].to_string();
        says(
            &volumes,
            &[&format!("{name}:/var/lib/adit"), "store-socket:/run/store"],
        );
        // Every volume of a service is declared, and every file is there.
        for volume in node["volumes"].as_array().unwrap() {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            let is_known = match source.strip_prefix("./") {
                Some(file) => fleet("compose").join(file).is_file(),
                None => all[0]["volumes"].get(source).is_some(),
            };
            assert!(is_known, "{source}");
        }
    }
    assert!(services["store"].get("ports").is_none());
    let conf = fs::read_to_string(fleet("compose/valkey.conf")).unwrap();
    says(&conf, &["port 0", "maxmemory-policy noeviction"]);
}

#[test]
fn ansible_accepts_the_playbook() {
    let folder = TempFolder::new("ansible").unwrap();
    let playbook = peer_path("python/bin/ansible-playbook");
    let mut command = Command::new(&playbook);
    command
        .args(["-i", "inventory.ini", "--syntax-check", "site.yml"])
        .env("LC_ALL", "C.UTF-8")
        .env("ANSIBLE_LOCAL_TEMP", folder.path())
        .env("ANSIBLE_HOME", folder.path())
        .current_dir(fleet("ansible"));
    let done = external_tools::run_to_end(command, LIMIT).unwrap();
    let output = done.expect_success().unwrap();
    says(&output, &["playbook: site.yml"]);
    let tasks = fs::read_to_string(fleet("ansible/roles/adit_node/tasks/main.yml")).unwrap();
    // The token is neither in a command line nor in a log.
    let join = tasks.split("- name: Join the realm").nth(1).unwrap();
    let join = join.split("- name: ").next().unwrap();
    says(join, &["stdin:", "no_log: true"]);
    assert!(
        !join
            .lines()
            .any(|line| line.contains("cmd:") && line.contains("token")),
        "{join}"
    );
}

/// systemd accepts the unit with the drop-in, which drains the node first.
#[test]
fn systemd_accepts_the_drop_in_of_a_node() {
    let folder = TempFolder::new("fleet-unit").unwrap();
    let bin = bin().display().to_string();
    let of_test = |text: String| {
        let text = text.replace("/usr/bin/adit", &bin);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("Documentation="));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let unit = fs::read_to_string(fleet("../systemd/adit.service")).unwrap();
    let unit = folder.write_file("adit.service", of_test(unit)).unwrap();
    let drop_in = fs::read_to_string(fleet("systemd/fleet.conf")).unwrap();
    fs::create_dir(folder.path().join("adit.service.d")).unwrap();
    let draft = folder.write_file("draft", of_test(drop_in)).unwrap();
    fs::rename(draft, folder.path().join("adit.service.d/fleet.conf")).unwrap();
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(&unit)
        .env("SYSTEMD_LOG_LEVEL", "notice")
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.path().display()));
    let verified = external_tools::run_to_end(command, LIMIT).unwrap();
    assert_eq!((verified.code, verified.output.trim()), (Some(0), ""));
}
