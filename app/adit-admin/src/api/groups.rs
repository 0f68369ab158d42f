//! Groups: their members' health for panels and Prometheus, and the selection of a member.

use adit_engine::connector::{GroupReport, GroupState, MemberReport, MemberSelections};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::Api;
use super::metric_family::{Labels, MetricFamily, MetricKind, MetricValue};
use super::reply::{ApiResult, Refusal, Reply};

#[derive(Serialize)]
struct GroupList {
    groups: Vec<GroupInfo>,
}

#[derive(Serialize)]
struct GroupInfo {
    name: String,
    kind: &'static str,
    members: Vec<MemberInfo>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemberInfo {
    name: String,
    up: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<bool>,
    /// Time within which its answers usually arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_seconds: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

/// The body of `POST /groups/:name`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    selected: String,
}

impl From<GroupReport> for GroupInfo {
    fn from(group: GroupReport) -> Self {
        let is_manual = group.kind == adit_config::GroupKind::Manual;
        let member = |member: MemberReport| MemberInfo {
            name: member.name,
            up: member.is_up,
            selected: is_manual.then_some(member.is_selected),
            usual_seconds: member.usual_time.map(|time| time.as_secs_f64()),
            out_seconds: member.out_for.map(|time| time.as_secs()),
            reason: member.reason,
        };
        Self {
            name: group.name,
            kind: group.kind.name(),
            members: group.members.into_iter().map(member).collect(),
        }
    }
}

impl Api {
    /// Answers `GET /groups`.
    pub(super) fn list_groups(&self) -> Reply {
        let groups = self.engine.groups();
        let groups = groups.iter().map(|group| group.report().into()).collect();
        Reply::ok(&GroupList { groups })
    }

    /// Writes the selections to their file. If that fails, they last until the process ends, which is a warning in
    /// the log: the selection itself is done.
    async fn keep_selections(&self, selections: MemberSelections) {
        let Some(file) = self.selections.clone() else {
            return;
        };
        let path = file.path().to_owned();
        let written = tokio::task::spawn_blocking(move || file.write(&selections)).await;
        let written = written.unwrap_or_else(|why| Err(why.into()));
        if let Err(why) = written {
            let path = path.display();
            warn!("the selection in a group lasts until adit ends: cannot write {path}: {why}");
        }
    }

    fn find_group(&self, name: &str) -> Result<std::sync::Arc<GroupState>, Refusal> {
        let mut groups = self.engine.groups().into_iter();
        let found = groups.find(|group| group.name() == name);
        found.ok_or_else(|| Refusal::not_found("no such group"))
    }

    /// Answers `GET /groups/:name`.
    pub(super) fn get_group(&self, name: &str) -> ApiResult {
        let group = self.find_group(name)?;
        Ok(Reply::ok(&GroupInfo::from(group.report())))
    }

    /// Answers `POST /groups/:name`: selects the member of a manual group.
    pub(super) async fn select_member(&self, name: &str, body: &[u8]) -> ApiResult {
        let _alone = self.change_lock.lock().await;
        let group = self.find_group(name)?;
        let wanted: Selection = serde_json::from_slice(body)
            .map_err(|_| Refusal::bad_request("the body must be `{\"selected\": \"MEMBER\"}`"))?;
        let refused = || {
            Refusal::bad_request(
                "the group is not `manual`, or has no member with this name or number",
            )
        };
        let selections = self.engine.select_member(&group, &wanted.selected);
        self.keep_selections(selections.ok_or_else(refused)?).await;
        Ok(Reply::ok(&GroupInfo::from(group.report())))
    }
}

/// Returns the metrics of all groups.
pub(super) fn metrics(groups: &[GroupReport]) -> [MetricFamily; 3] {
    let (mut up, mut seconds, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        for member in &group.members {
            let labels = Labels::default()
                .with("group", group.name.as_str())
                .with("member", member.name.as_str());
            up.push((labels.clone(), u64::from(member.is_up).into()));
            if let Some(time) = member.usual_time {
                // Milliseconds are enough.
                let usual = (time.as_secs_f64() * 1000.0).round() / 1000.0;
                seconds.push((labels.clone(), MetricValue::Measure(usual)));
            }
            for (cause, count) in &member.failures {
                failures.push((labels.clone().with("cause", *cause), (*count).into()));
            }
        }
    }
    [
        MetricFamily::new(
            "adit_group_member_up",
            MetricKind::Gauge,
            "1 unless the member of a group has failed and not returned.",
            up,
        ),
        MetricFamily::new(
            "adit_group_member_seconds",
            MetricKind::Gauge,
            "Time within which the answers of a member usually arrive.",
            seconds,
        ),
        MetricFamily::new(
            "adit_group_member_failures_total",
            MetricKind::Counter,
            "Failures of a member, by cause.",
            failures,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::metrics_text::{MetricsFormat, write_metrics};
    use super::*;

    #[test]
    fn members_have_metrics() {
        let member = |name: &str, is_up| MemberReport {
            name: name.to_owned(),
            is_up,
            is_selected: false,
            usual_time: is_up.then_some(Duration::from_millis(250)),
            open: 0,
            out_for: None,
            reason: String::new(),
            failures: match is_up {
                true => Vec::new(),
                false => vec![("silent", 3)],
            },
        };
        let group = GroupReport {
            name: "home".to_owned(),
            kind: adit_config::GroupKind::Failover,
            members: vec![member("a \"b\"", true), member("c", false)],
        };
        let text = write_metrics(MetricsFormat::Prometheus, &metrics(&[group]));
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"adit_group_member_up{group="home",member="a \"b\""} 1"#,
                r#"adit_group_member_up{group="home",member="c"} 0"#,
                r#"adit_group_member_seconds{group="home",member="a \"b\""} 0.25"#,
                r#"adit_group_member_failures_total{group="home",member="c",cause="silent"} 3"#,
            ]
        );
    }
}
