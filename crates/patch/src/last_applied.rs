//! `kubectl`'s `last-applied-configuration` annotation: moving from client-side to server-side
//! apply and back (apimachinery, `lastAppliedManager` and `lastAppliedUpdater`).

use serde_json::Value;

use crate::fieldset::FieldSet;
use crate::limits::ANNOTATIONS_BYTES_MAX;
use crate::typed::{compare, fields};
use crate::types::Type;

/// The only manager that the annotation matters to.
pub(crate) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> Option<&str> {
    let text = object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields that client-side apply set and that are still as it set them. `kubectl` may take
/// these over without a conflict.
pub(crate) fn owned<'a>(
    ty: Type<'a>,
    live: &'a Value,
    api_version: &str,
) -> Option<FieldSet<'static>> {
    let config: Value = serde_json::from_str(annotation(live)?).ok()?;
    if config.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    let live = live.clone();
    let changes = compare(ty, &config, &live);
    let fields = fields(ty, &config)
        .difference(&changes.changed)
        .difference(&changes.removed);
    Some(fields.into_owned())
}

/// Brings the annotation up to date where the object has one.
pub(crate) fn record(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_mut(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = annotations_mut(object) else {
        return;
    };
    // kubectl ends the document with a newline, as Go's JSON encoder does.
    let text = format!("{config}\n");
    let others: usize = annotations
        .iter()
        .filter(|(key, _)| *key != ANNOTATION)
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if others + ANNOTATION.len() + text.len() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    }
}

fn annotations_mut(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
