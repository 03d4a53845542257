//! Which objects a list or watch selects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ecp_meta::selector::{FieldSelector, LabelSelector};
use serde::Deserialize;
use serde_json::Value;

use crate::registry::ResourceInfo;
use crate::request::Params;
use crate::status::Status;
use crate::storage;

/// Label and field selectors of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether a field selector needs more than the key.
    deep: bool,
}

/// Only what label selectors need; everything else is skipped without allocating.
#[derive(Deserialize)]
struct Labelled<'a> {
    #[serde(borrow, default)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

impl Selection {
    /// The selection of a request.
    ///
    /// # Errors
    /// 400: the resource does not support a field.
    pub(super) fn of(info: &ResourceInfo, params: &Params) -> Result<Self, Status> {
        let mut deep = false;
        for term in params.fields.terms() {
            match term.field.as_str() {
                "metadata.name" | "metadata.namespace" => {}
                field if info.selectable_fields.iter().any(|f| f == field) => deep = true,
                field => {
                    return Err(Status::bad_request(format!(
                        "field label not supported: {field}"
                    )));
                }
            }
        }
        Ok(Self {
            labels: params.labels.clone(),
            fields: params.fields.clone(),
            deep,
        })
    }

    /// The same selection for one name.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that the selection can select, if it pins one.
    pub(super) fn exact_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    /// Whether an encoded object is selected.
    pub(super) fn matches(&self, info: &ResourceInfo, key: &str, value: &[u8]) -> bool {
        self.fields_match(info, key, value) && self.labels_match(value)
    }

    fn labels_match(&self, value: &[u8]) -> bool {
        if self.labels.is_empty() {
            return true;
        }
        let labelled: Option<Labelled<'_>> = serde_json::from_slice(storage::raw_json(value)).ok();
        let labels = labelled
            .and_then(|l| l.metadata)
            .and_then(|m| m.labels)
            .unwrap_or_default();
        self.labels.matches(|k| labels.get(k).map(AsRef::as_ref))
    }

    fn fields_match(&self, info: &ResourceInfo, key: &str, value: &[u8]) -> bool {
        if self.fields.is_empty() {
            return true;
        }
        let Some(parts) = storage::parse_key(key) else {
            return false;
        };
        let object = if self.deep {
            storage::decode_at(info, value, ecp_store::Revision(0))
        } else {
            Value::Null
        };
        self.fields.matches(|field| match field {
            "metadata.name" => parts.name.to_owned(),
            "metadata.namespace" => parts.namespace.unwrap_or_default().to_owned(),
            // Events are selected by the component that reports them, wherever it is said.
            "source" => match text_at(&object, "source.component") {
                source if source.is_empty() => text_at(&object, "reportingComponent"),
                source => source,
            },
            field => text_at(&object, field),
        })
    }
}

/// The value at a dotted path, as text; absent reads as empty.
fn text_at(object: &Value, path: &str) -> String {
    let value = path
        .split('.')
        .try_fold(object, |v, step| v.get(step))
        .unwrap_or(&Value::Null);
    match value {
        Value::Null => String::new(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}
