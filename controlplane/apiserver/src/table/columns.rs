//! Columns of a table and the cells under them.

use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::builtin::{self, BuiltinColumn};
use super::jsonpath::JsonPath;
use crate::registry::{PrinterColumn, ResourceInfo};

/// The columns of one resource: one value serves all rows of a response.
#[derive(Debug)]
pub struct Columns<'a>(Vec<Column<'a>>);

/// The paths of a resource's printer columns, compiled once for all responses. One that does not
/// compile is `None`: its column stays empty.
#[derive(Debug, Default)]
pub struct CompiledColumns(OnceLock<Vec<Option<JsonPath>>>);

impl Clone for CompiledColumns {
    /// A copy is compiled anew: its columns may be changed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl CompiledColumns {
    fn paths(&self, columns: &[PrinterColumn]) -> &[Option<JsonPath>] {
        self.0.get_or_init(|| {
            columns
                .iter()
                .map(|column| JsonPath::compile(&column.json_path).ok())
                .collect()
        })
    }
}

#[derive(Debug)]
enum Column<'a> {
    Name,
    Age,
    /// A column of a custom resource.
    Path {
        column: &'a PrinterColumn,
        path: Option<&'a JsonPath>,
    },
    Builtin(&'static BuiltinColumn),
}

const NAME_DESCRIPTION: &str = "Name of the object, unique among its kind and namespace.";
const AGE_DESCRIPTION: &str = "Time since the object was created.";

impl<'a> Columns<'a> {
    /// The columns of a resource: its own ones, else Name and Age.
    pub fn of(resource: &'a ResourceInfo) -> Self {
        let mut columns = vec![Column::Name];
        let builtin = builtin::columns(&resource.gvk);
        if let Some(builtin) = builtin.filter(|_| !resource.is_custom()) {
            columns.extend(builtin.iter().map(Column::Builtin));
            if !builtin.iter().any(|column| column.name == "Created At") {
                columns.push(Column::Age);
            }
        } else {
            let paths = resource.columns.paths(&resource.printer_columns);
            let own = resource
                .printer_columns
                .iter()
                .zip(paths)
                .map(|(column, path)| Column::Path {
                    column,
                    path: path.as_ref(),
                });
            columns.extend(own);
            // A definition that names columns says everything; built-ins keep their age.
            if resource.printer_columns.is_empty() || !resource.is_custom() {
                columns.push(Column::Age);
            }
        }
        Self(columns)
    }

    /// `columnDefinitions`.
    pub(super) fn definitions(&self) -> Vec<Value> {
        self.0.iter().map(Column::definition).collect()
    }

    /// `cells` of one object.
    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        self.0
            .iter()
            .map(|column| column.cell(object, now))
            .collect()
    }
}

impl Column<'_> {
    fn definition(&self) -> Value {
        let (name, kind, format, description, priority) = match self {
            Self::Name => ("Name", "string", "name", NAME_DESCRIPTION.to_owned(), 0),
            Self::Age => ("Age", "date", "", AGE_DESCRIPTION.to_owned(), 0),
            Self::Builtin(c) => (c.name, c.kind, "", c.description.to_owned(), c.priority),
            Self::Path { column: c, .. } => {
                let description = match c.description.as_str() {
                    "" => format!(
                        "Custom resource definition column (in JSONPath format): {}",
                        c.json_path
                    ),
                    text => text.to_owned(),
                };
                (
                    c.name.as_str(),
                    c.kind.as_str(),
                    c.format.as_str(),
                    description,
                    c.priority,
                )
            }
        };
        json!({
            "name": name, "type": kind, "format": format, "description": description,
            "priority": priority,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::Name => ecp_meta::object::name(object).into(),
            Self::Age => since(object.pointer("/metadata/creationTimestamp"), now).into(),
            Self::Builtin(column) => (column.cell)(object, now),
            Self::Path { column, path } => path
                .and_then(|path| path.first(object))
                .map_or(Value::Null, |value| typed(&column.kind, value, now)),
        }
    }
}

/// A value as a cell of a column type; null if it does not fit the type.
fn typed(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("integer", Value::Number(n)) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => n.into(),
            // Cut towards zero, as a Go conversion.
            (None, Some(n)) => (n.trunc() as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", value) => text(value).into(),
        ("date", Value::String(_)) => since(Some(value), now).into(),
        _ => Value::Null,
    }
}

/// A value as text: composite ones as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Age of a timestamp field.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str) {
        None | Some("" | "null") => "<unknown>".to_owned(),
        Some(text) => text
            .parse()
            .map_or_else(|_| "<invalid>".to_owned(), |then| age(then, now)),
    }
}
