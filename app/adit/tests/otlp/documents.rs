//! The documents of OTLP, checked strictly: every name is one of the protocol's, and every value has its JSON form
//! (`opentelemetry-proto`, `trace/v1`, `metrics/v1`, `common/v1` and `resource/v1`; 64-bit numbers in quotes, IDs in
//! hexadecimal).

use serde_json::{Map, Value};

type Checked<T> = Result<T, String>;

/// Returns the spans of a request.
pub(crate) fn check_traces(document: &Value) -> Checked<Vec<Value>> {
    let mut spans = Vec::new();
    for resource in only_list(document, "resourceSpans")? {
        let parts = object(resource, &["resource", "scopeSpans"], &[])?;
        check_resource(&parts["resource"])?;
        for scope in list(&parts["scopeSpans"])? {
            let parts = object(scope, &["scope", "spans"], &[])?;
            check_scope(&parts["scope"])?;
            for span in list(&parts["spans"])? {
                check_span(span)?;
                spans.push(span.clone());
            }
        }
    }
    Ok(spans)
}

/// Returns the metrics of a request.
pub(crate) fn check_metrics(document: &Value) -> Checked<Vec<Value>> {
    let mut metrics = Vec::new();
    for resource in only_list(document, "resourceMetrics")? {
        let parts = object(resource, &["resource", "scopeMetrics"], &[])?;
        check_resource(&parts["resource"])?;
        for scope in list(&parts["scopeMetrics"])? {
            let parts = object(scope, &["scope", "metrics"], &[])?;
            check_scope(&parts["scope"])?;
            for metric in list(&parts["metrics"])? {
                check_metric(metric).map_err(|why| format!("{}: {why}", metric["name"]))?;
                metrics.push(metric.clone());
            }
        }
    }
    Ok(metrics)
}

fn check_span(span: &Value) -> Checked<()> {
    const NEEDED: &[&str] = &[
        "traceId",
        "spanId",
        "name",
        "kind",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "attributes",
    ];
    let parts = object(span, NEEDED, &["parentSpanId", "status"])?;
    check_id(&parts["traceId"], 32)?;
    check_id(&parts["spanId"], 16)?;
    if let Some(parent) = parts.get("parentSpanId") {
        check_id(parent, 16)?;
    }
    let name = text(&parts["name"])?;
    if name.is_empty() {
        return Err("a span without a name".to_owned());
    }
    let kind = parts["kind"].as_u64();
    if !kind.is_some_and(|kind| (1..=5).contains(&kind)) {
        return Err(format!("{name}: kind {}", parts["kind"]));
    }
    let (start, end) = (
        number(&parts["startTimeUnixNano"])?,
        number(&parts["endTimeUnixNano"])?,
    );
    // Not before 2023, which would be seconds or milliseconds.
    if start < 1_672_531_200_000_000_000 || end < start {
        return Err(format!("{name}: from {start} to {end}"));
    }
    if let Some(status) = parts.get("status") {
        let status = object(status, &["code"], &["message"])?;
        if status["code"].as_u64() != Some(2) {
            return Err(format!("{name}: status {}", status["code"]));
        }
    }
    check_attributes(&parts["attributes"])
}

fn check_metric(metric: &Value) -> Checked<()> {
    let parts = object(
        metric,
        &["name", "description", "unit"],
        &["gauge", "sum", "histogram"],
    )?;
    for key in ["name", "description", "unit"] {
        if text(&parts[key])?.is_empty() {
            return Err(format!("an empty {key}"));
        }
    }
    if parts.len() != 4 {
        return Err("not one kind of data".to_owned());
    }
    if let Some(gauge) = parts.get("gauge") {
        for point in only_list(gauge, "dataPoints")? {
            check_number_point(point)?;
        }
    }
    if let Some(sum) = parts.get("sum") {
        let sum = object(
            sum,
            &["aggregationTemporality", "isMonotonic", "dataPoints"],
            &[],
        )?;
        check_cumulative(sum)?;
        if !sum["isMonotonic"].is_boolean() {
            return Err("isMonotonic".to_owned());
        }
        for point in list(&sum["dataPoints"])? {
            check_number_point(point)?;
        }
    }
    if let Some(histogram) = parts.get("histogram") {
        let histogram = object(histogram, &["aggregationTemporality", "dataPoints"], &[])?;
        check_cumulative(histogram)?;
        for point in list(&histogram["dataPoints"])? {
            check_histogram_point(point)?;
        }
    }
    Ok(())
}

fn check_cumulative(data: &Map<String, Value>) -> Checked<()> {
    match data["aggregationTemporality"].as_u64() {
        Some(2) => Ok(()),
        _ => Err("the temporality is not cumulative".to_owned()),
    }
}

const POINT: [&str; 3] = ["attributes", "startTimeUnixNano", "timeUnixNano"];

fn check_number_point(point: &Value) -> Checked<()> {
    let parts = object(point, &POINT, &["asInt", "asDouble"])?;
    check_point(parts)?;
    match (parts.get("asInt"), parts.get("asDouble")) {
        (Some(value), None) => number(value).map(drop),
        (None, Some(value)) if value.is_number() => Ok(()),
        _ => Err("not one value".to_owned()),
    }
}

fn check_histogram_point(point: &Value) -> Checked<()> {
    let more = ["count", "sum", "bucketCounts", "explicitBounds"];
    let parts = object(point, &[&POINT[..], &more].concat(), &[])?;
    check_point(parts)?;
    let counts: Vec<u128> = list(&parts["bucketCounts"])?
        .iter()
        .map(number)
        .collect::<Checked<_>>()?;
    let bounds: Vec<f64> = list(&parts["explicitBounds"])?
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    if counts.len() != bounds.len() + 1 {
        return Err(format!("{} counts, {} bounds", counts.len(), bounds.len()));
    }
    if !bounds.is_sorted_by(|a, b| a < b) {
        return Err(format!("{bounds:?}"));
    }
    if counts.iter().sum::<u128>() != number(&parts["count"])? {
        return Err(format!("the sum of {counts:?} is not the count"));
    }
    match parts["sum"].as_f64() {
        Some(_) => Ok(()),
        None => Err("no sum".to_owned()),
    }
}

fn check_point(parts: &Map<String, Value>) -> Checked<()> {
    let (start, now) = (
        number(&parts["startTimeUnixNano"])?,
        number(&parts["timeUnixNano"])?,
    );
    if start < 1_672_531_200_000_000_000 || now < start {
        return Err(format!("from {start} to {now}"));
    }
    check_attributes(&parts["attributes"])
}

fn check_resource(resource: &Value) -> Checked<()> {
    let attributes = &object(resource, &["attributes"], &[])?["attributes"];
    check_attributes(attributes)?;
    let service = list(attributes)?
        .iter()
        .find(|attribute| attribute["key"] == "service.name");
    match service {
        Some(name) if name["value"]["stringValue"] == "adit" => Ok(()),
        _ => Err("no service.name".to_owned()),
    }
}

fn check_scope(scope: &Value) -> Checked<()> {
    let parts = object(scope, &["name", "version"], &[])?;
    text(&parts["name"]).map(drop)
}

fn check_attributes(attributes: &Value) -> Checked<()> {
    let mut keys = Vec::new();
    for attribute in list(attributes)? {
        let parts = object(attribute, &["key", "value"], &[])?;
        let key = text(&parts["key"])?;
        if keys.contains(&key) {
            return Err(format!("{key} twice"));
        }
        keys.push(key);
        let value = object(
            &parts["value"],
            &[],
            &["stringValue", "intValue", "boolValue", "doubleValue"],
        )?;
        let mut each = value.iter();
        let (Some((form, value)), None) = (each.next(), each.next()) else {
            return Err(format!("{key} has not one value"));
        };
        let is_valid = match form.as_str() {
            "stringValue" => value.is_string(),
            "intValue" => number(value).is_ok(),
            "boolValue" => value.is_boolean(),
            _ => value.is_number(),
        };
        if !is_valid {
            return Err(format!("{key}: {form} {value}"));
        }
    }
    Ok(())
}

/// Returns an object that has all of `needed`, and nothing but these and some of `others`.
fn object<'v>(
    value: &'v Value,
    needed: &[&str],
    others: &[&str],
) -> Checked<&'v Map<String, Value>> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("no object: {value}"))?;
    if let Some(missing) = needed.iter().find(|key| !object.contains_key(**key)) {
        return Err(format!("`{missing}` is missing in {value}"));
    }
    let is_known = |key: &str| needed.contains(&key) || others.contains(&key);
    match object.keys().find(|key| !is_known(key)) {
        Some(unknown) => Err(format!("`{unknown}` is not a name of the protocol")),
        None => Ok(object),
    }
}

fn only_list<'v>(value: &'v Value, key: &str) -> Checked<&'v [Value]> {
    list(&object(value, &[key], &[])?[key])
}

fn list(value: &Value) -> Checked<&[Value]> {
    let list = value.as_array().map(Vec::as_slice);
    list.ok_or_else(|| format!("no list: {value}"))
}

fn text(value: &Value) -> Checked<&str> {
    value.as_str().ok_or_else(|| format!("no text: {value}"))
}

/// Returns a 64-bit number, which is in quotes.
fn number(value: &Value) -> Checked<u128> {
    let parsed = text(value)?.parse::<u64>().map(u128::from);
    parsed.map_err(|why| format!("{value}: {why}"))
}

fn check_id(value: &Value, len: usize) -> Checked<()> {
    let id = text(value)?;
    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let is_zero = id.chars().all(|c| c == '0');
    match id.len() == len && id.chars().all(is_hex) && !is_zero {
        true => Ok(()),
        false => Err(format!("`{id}` is not an ID")),
    }
}
