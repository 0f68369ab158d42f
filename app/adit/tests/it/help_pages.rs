//! Help on the configuration file, and the manual pages.

use std::fs;

use adit_interop::TempFolder;
use adit_interop::external_tools::ToolOutput;

use crate::setup::{ended, says};

fn printed(args: &[&str]) -> String {
    ended(args).expect_success().unwrap()
}

#[test]
fn help_explains_the_configuration_file() {
    let keys = ["listen", "via", "rules", "users", "relay"];
    let config = printed(&["help", "config"]);
    says(&config, &keys);
    says(
        &config,
        &["[route.home]", "@FILE", "$NAME", "idle=1h", "adit check"],
    );
    assert_eq!(printed(&["help", "CONFIG"]), config);
}

#[test]
fn help_explains_rules_groups_and_users() {
    let rules = printed(&["help", "rules"]);
    says(
        &rules,
        &[
            "match",
            "resolve",
            "*.lan",
            "regex:",
            "set:ads",
            "clash-classical",
            ":6000-6063",
            "10.0.0.0/8",
            "reject://",
        ],
    );
    let groups = printed(&["help", "groups"]);
    says(&groups, &["direct://", "5 seconds", "5 minutes", "250 ms"]);
    let users = printed(&["help", "users"]);
    says(
        &users,
        &[
            "users=@users.json",
            "[route.friends.users]",
            "SERVER_KEY:USER_KEY",
        ],
    );
}

#[test]
fn a_topic_that_is_nearly_right_is_suggested() {
    for (typed, meant) in [("confg", "config"), ("grups", "groups"), ("rulse", "rules")] {
        let ToolOutput { code, output } = ended(&["help", typed]);
        assert_eq!(code, Some(2), "{typed}: {output}");
        says(&output, &[&format!("adit help {meant}")]);
    }
}

#[test]
fn manual_pages_are_printed_and_written() {
    let sections = [
        ".SH NAME",
        ".SH EXAMPLES",
        ".SH FILES",
        ".SH \"EXIT STATUS\"",
        ".SH \"SEE ALSO\"",
    ];
    let folder = TempFolder::new("man").unwrap();
    let path = folder.path().to_str().unwrap();
    printed(&["man", "--dir", path]);
    for (name, file, words) in [
        (
            "adit.toml",
            "adit.toml.5",
            &[".SH RULES", ".SH GROUPS", ".SH USERS"][..],
        ),
        (
            "adit-urls",
            "adit-urls.7",
            &[
                ".SH \"SCHEME SS\"",
                ".SH \"SCHEME TPROXY\"",
                ".SH \"SCHEME TCP+KCP\"",
            ],
        ),
    ] {
        let page = printed(&["man", name]);
        says(&page, &sections);
        says(&page, words);
        // Before the title is only how the page writes an apostrophe.
        let title = page.lines().find(|line| line.starts_with(".T"));
        let expected = format!(".TH {} ", name.replace('-', "\\-"));
        assert!(
            title.is_some_and(|title| title.starts_with(&expected)),
            "{page}"
        );
        assert_eq!(page, printed(&["man", file]));
        let written = fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(page.trim_end(), written.trim_end());
    }
}

#[test]
fn the_page_of_a_command_is_printed() {
    let page = printed(&["man"]);
    assert_eq!(page, printed(&["man", "adit"]));
    let page = printed(&["man", "run"]);
    says(&page, &[".SH OPTIONS", "config"]);
    assert_eq!(page, printed(&["man", "adit-run"]));
    let ToolOutput { code, output } = ended(&["man", "nothing"]);
    assert_eq!(code, Some(2), "{output}");
    says(&output, &["adit.toml", "adit-urls"]);
}
