//! The answer to `GET /fleet`.

use super::Api;
use super::reply::{ApiResult, Refusal, Reply};

impl Api {
    /// Answers `GET /fleet`.
    pub(super) fn get_fleet(&self, unix: u64) -> ApiResult {
        let nodes = self.fleet_nodes.as_ref();
        let nodes =
            nodes.ok_or_else(|| Refusal::not_found("this process is no node of a fleet"))?;
        Ok(Reply::json(hyper::StatusCode::OK, &nodes.describe(unix)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use adit_config::Plan;
    use adit_engine::Engine;
    use http_body_util::BodyExt;
    use hyper::Response;
    use serde_json::{Value, json};

    use super::super::reply::ReplyBody;
    use super::super::{FleetDescription, FleetNodes};
    use super::*;

    struct Pair;

    impl FleetNodes for Pair {
        fn describe(&self, unix: u64) -> FleetDescription {
            FleetDescription {
                realm: "main".to_owned(),
                node: 2,
                nodes: vec![json!({ "id": 1, "uptime": unix })],
                ..FleetDescription::default()
            }
        }
    }

    #[tokio::test]
    async fn only_a_node_describes_a_fleet() {
        let plan = Plan::from_words(&["mixed://127.0.0.1:0".to_owned()]).unwrap();
        let engine = Arc::new(Engine::start(&plan).await.unwrap());
        let api = Api::new(engine, &plan, None, None);
        let answer: Response<ReplyBody> = Reply::from(api.get_fleet(5).unwrap_err()).into();
        assert_eq!(answer.status(), 404);
        let api = api.with_fleet_nodes(Arc::new(Pair));
        let answer: Response<ReplyBody> = api.get_fleet(5).unwrap().into();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let found: Value = serde_json::from_slice(&body).unwrap();
        let expected = json!({
            "realm": "main", "node": 2, "users": 0, "fault": null, "nodes": [{ "id": 1, "uptime": 5 }],
        });
        assert_eq!(found, expected);
    }
}
