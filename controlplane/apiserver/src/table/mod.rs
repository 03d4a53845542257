//! Representations other than the whole object: tables and partial metadata.
//!
//! They are what `kubectl get` and metadata-only clients ask for with
//! `Accept: application/json;as=Table;g=meta.k8s.io;v=v1`. Behaviour follows
//! `k8s.io/apiserver/pkg/endpoints/handlers/response.go` and the table convertors of
//! apiextensions-apiserver and kubernetes.

pub(crate) mod accept;
mod age;
mod builtin;
mod columns;
mod jsonpath;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::ResourceInfo;
use crate::status::Status;

pub use age::human_duration;
pub use columns::{Columns, CompiledColumns};
pub use jsonpath::{JsonPath, JsonPathError};

/// How a client wants to see objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// Whole objects.
    #[default]
    Object,
    /// `Table` of `meta.k8s.io/v1`.
    Table {
        /// What each row carries.
        include: IncludeObject,
    },
    /// `PartialObjectMetadata` of `meta.k8s.io/v1`.
    Metadata,
}

/// `includeObject` of a table request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The object.
    Object,
}

/// Metadata of a list.
#[derive(Clone, Debug, Default)]
pub struct ListMeta {
    /// Revision of the list.
    pub resource_version: String,
    /// Token of the next page, or empty.
    pub next: String,
    /// Items after this page, if known.
    pub remaining: Option<u64>,
}

const META_API_VERSION: &str = "meta.k8s.io/v1";
const JSON: &str = "application/json";

/// The representation that `Accept` and `includeObject` ask for: the first accepted one that can be
/// made.
///
/// # Errors
/// 406: none of the accepted types can be made. 400: `includeObject` is not known.
pub fn negotiate(headers: &HeaderMap, query: &str) -> Result<Representation, Status> {
    for range in accept::accepted(headers) {
        if !range.covers(JSON) {
            continue;
        }
        let Some(kind) = range.param("as") else {
            return Ok(Representation::Object);
        };
        let group = range.param("g").unwrap_or("meta.k8s.io");
        if group != "meta.k8s.io" || range.param("v") != Some("v1") {
            continue;
        }
        match kind {
            "Table" => {
                return Ok(Representation::Table {
                    include: include_object(query)?,
                });
            }
            "PartialObjectMetadata" | "PartialObjectMetadataList" => {
                return Ok(Representation::Metadata);
            }
            _ => {}
        }
    }
    Err(Status::not_acceptable(
        "only the following media types are accepted: application/json, \
         application/json;as=Table;v=v1;g=meta.k8s.io, \
         application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io, \
         application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ))
}

fn include_object(query: &str) -> Result<IncludeObject, Status> {
    let value = url::form_urlencoded::parse(query.as_bytes())
        .find_map(|(key, value)| (key == "includeObject").then_some(value));
    match value.as_deref() {
        None | Some("" | "Metadata") => Ok(IncludeObject::Metadata),
        Some("None") => Ok(IncludeObject::None),
        Some("Object") => Ok(IncludeObject::Object),
        Some(other) => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
             must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// The `Content-Type` of a representation, without parameters that depend on the request.
pub fn content_type(_: Representation) -> &'static str {
    JSON
}

/// A list of encoded objects in another representation than [`Representation::Object`]; ages are
/// those at `now`.
pub fn list(
    representation: Representation,
    resource: &ResourceInfo,
    items: Vec<Bytes>,
    meta: &ListMeta,
    now: Timestamp,
) -> Bytes {
    let items = items.iter().map(|item| parse(item));
    let whole = match representation {
        Representation::Object => json!({
            "kind": resource.list_kind,
            "apiVersion": resource.api_version(),
            "metadata": list_meta(meta),
            "items": items.collect::<Vec<_>>(),
        }),
        Representation::Metadata => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": META_API_VERSION,
            "metadata": list_meta(meta),
            "items": items.map(partial).collect::<Vec<_>>(),
        }),
        Representation::Table { include } => {
            let columns = Columns::of(resource);
            let rows = items
                .map(|item| row(&columns, item, include, now))
                .collect();
            table(Some(&columns), rows, list_meta(meta))
        }
    };
    encode(&whole)
}

/// One encoded object in another representation. `first` says whether a watch has not sent
/// anything yet: its first table carries the columns.
pub fn object(
    representation: Representation,
    resource: &ResourceInfo,
    object: &[u8],
    first: bool,
    now: Timestamp,
) -> Bytes {
    match representation {
        Representation::Object => Bytes::copy_from_slice(object),
        Representation::Metadata => encode(&partial(parse(object))),
        Representation::Table { include } => {
            let columns = Columns::of(resource);
            let object = parse(object);
            let mut meta = Map::new();
            if let Some(version) = ecp_meta::object::meta_str(&object, "resourceVersion") {
                meta.insert("resourceVersion".to_owned(), version.into());
            }
            let rows = vec![row(&columns, object, include, now)];
            encode(&table(first.then_some(&columns), rows, Value::Object(meta)))
        }
    }
}

fn parse(object: &[u8]) -> Value {
    // Objects come from the store or from an encoder, both of which hold JSON.
    serde_json::from_slice(object).unwrap_or_default()
}

fn encode(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn list_meta(meta: &ListMeta) -> Value {
    let mut fields = Map::new();
    fields.insert(
        "resourceVersion".to_owned(),
        meta.resource_version.as_str().into(),
    );
    if !meta.next.is_empty() {
        fields.insert("continue".to_owned(), meta.next.as_str().into());
    }
    if let Some(remaining) = meta.remaining {
        fields.insert("remainingItemCount".to_owned(), remaining.into());
    }
    Value::Object(fields)
}

fn partial(mut object: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": META_API_VERSION,
        "metadata": object.get_mut("metadata").map(Value::take).unwrap_or_else(|| json!({})),
    })
}

fn row(columns: &Columns<'_>, object: Value, include: IncludeObject, now: Timestamp) -> Value {
    let cells = columns.cells(&object, now);
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial(object),
        IncludeObject::Object => object,
    };
    json!({"cells": cells, "object": object})
}

fn table(columns: Option<&Columns<'_>>, rows: Vec<Value>, meta: Value) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": META_API_VERSION,
        "metadata": meta,
        "columnDefinitions": columns.map(Columns::definitions),
        "rows": rows,
    })
}

#[cfg(test)]
mod tests;
