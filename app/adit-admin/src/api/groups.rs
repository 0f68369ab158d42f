//! Groups: their members' health for panels and Prometheus, and the selection of a member.

use adit_engine::connector::{GroupReport, GroupState, MemberReport, MemberSelections};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::Api;
use super::metrics_text::{MetricKind, escape_label};
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

/// Labels and a value of a metric.
type Sample = (String, String);

/// The metrics of all groups: name, type, help and samples of each.
pub(super) fn metrics(
    groups: &[GroupReport],
) -> [(&'static str, MetricKind, &'static str, Vec<Sample>); 3] {
    let (mut up, mut seconds, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        for member in &group.members {
            let labels = format!(
                "group=\"{}\",member=\"{}\"",
                group.name,
                escape_label(&member.name)
            );
            up.push((labels.clone(), u8::from(member.is_up).to_string()));
            if let Some(time) = member.usual_time {
                seconds.push((labels.clone(), format!("{:.3}", time.as_secs_f64())));
            }
            for (cause, count) in &member.failures {
                failures.push((format!("{labels},cause=\"{cause}\""), count.to_string()));
            }
        }
    }
    [
        (
            "adit_group_member_up",
            MetricKind::Gauge,
            "1 unless the member of a group has failed and not returned.",
            up,
        ),
        (
            "adit_group_member_seconds",
            MetricKind::Gauge,
            "Time within which the answers of a member usually arrive.",
            seconds,
        ),
        (
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
        let [up, seconds, failures] = metrics(&[group]).map(|metric| metric.3);
        let one = "group=\"home\",member=\"a \\\"b\\\"\"".to_owned();
        let two = "group=\"home\",member=\"c\"".to_owned();
        let failed = format!("{two},cause=\"silent\"");
        assert_eq!(up, [(one.clone(), "1".to_owned()), (two, "0".to_owned())]);
        assert_eq!(seconds, [(one, "0.250".to_owned())]);
        assert_eq!(failures, [(failed, "3".to_owned())]);
    }
}
