//! Validation of values (kube-openapi `pkg/validation/validate`, apiextensions
//! `pkg/apiserver/validation`), with their wording.

use serde_json::{Map, Number, Value};

use crate::checks::{Bound, Checks};
use crate::error::{FieldError, FieldErrorKind};
use crate::limits;
use crate::node::{Node, NodeType};
use crate::path::Path;
use crate::{cel, embedded, junctor, listtype, number};

/// Validates an object against the schema of its kind.
pub(crate) fn validate(object: &Value, old: Option<&Value>, root: &Node) -> Vec<FieldError> {
    if nests_deeper(object, limits::OBJECT_DEPTH_MAX) {
        return vec![too_deep()];
    }
    let mut report = Report::default();
    check(root, object, old, &Path::Root, &mut report);
    let mut errors = report.errors;
    embedded::check(root, object, &Path::Root, &mut errors);
    if has_unique_lists(root) {
        let start = errors.len();
        listtype::check(root, object, &Path::Root, &mut errors);
        // As upstream: an object that had duplicates may keep them.
        if let Some(old) = old.filter(|_| errors.len() > start) {
            let mut old_errors = Vec::new();
            listtype::check(root, old, &Path::Root, &mut old_errors);
            if !old_errors.is_empty() {
                errors.truncate(start);
            }
        }
    }
    cel::evaluate(root, object, old, &Path::Root, &mut errors);
    errors
}

/// Validates a value of a node, such as a default, as if it were new. Messages name fields as seen
/// from the value, paths as seen from `path`.
pub(crate) fn validate_at(
    value: &Value,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for mut error in validate_alone(value, node) {
        let base = path.text();
        error.field = match error.field.as_str() {
            "<nil>" => base,
            field if field.starts_with('[') => format!("{base}{field}"),
            field => format!("{base}.{field}"),
        };
        errors.push(error);
    }
}

fn validate_alone(value: &Value, node: &Node) -> Vec<FieldError> {
    if nests_deeper(value, limits::OBJECT_DEPTH_MAX) {
        return vec![too_deep()];
    }
    let mut report = Report::default();
    check(node, value, None, &Path::Root, &mut report);
    let mut errors = report.errors;
    embedded::check(node, value, &Path::Root, &mut errors);
    listtype::check(node, value, &Path::Root, &mut errors);
    if errors.is_empty() {
        cel::evaluate_default(node, value, &mut errors);
    }
    errors
}

fn too_deep() -> FieldError {
    let detail = format!(
        "must not be nested deeper than {}",
        limits::OBJECT_DEPTH_MAX
    );
    FieldError::new(FieldErrorKind::Invalid, "<nil>", detail)
}

fn has_unique_lists(node: &Node) -> bool {
    node.checks
        .as_ref()
        .is_some_and(|checks| checks.has_unique_lists)
}

/// Whether a value nests deeper than `left` levels. Recurses no deeper than that.
fn nests_deeper(value: &Value, left: usize) -> bool {
    match value {
        Value::Object(map) if !map.is_empty() => {
            left == 0 || map.values().any(|value| nests_deeper(value, left - 1))
        }
        Value::Array(items) if !items.is_empty() => {
            left == 0 || items.iter().any(|value| nests_deeper(value, left - 1))
        }
        _ => false,
    }
}

/// What a validation finds.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Only whether there are errors is asked, so none is written.
    pub(crate) quiet: bool,
    pub(crate) failed: bool,
    pub(crate) errors: Vec<FieldError>,
    /// Checks that were made, to find the branch of a junctor that fits best.
    pub(crate) matched: usize,
}

impl Report {
    pub(crate) fn quiet() -> Self {
        Self {
            quiet: true,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, error: impl FnOnce() -> FieldError) {
        self.failed = true;
        if !self.quiet && self.errors.len() < limits::ERRORS_MAX {
            self.errors.push(error());
        }
    }

    fn invalid(&mut self, path: &Path<'_>, value: &Value, expected: impl FnOnce() -> String) {
        self.push(|| {
            let detail = format!("{} in body {}", path.text(), expected());
            FieldError::new(FieldErrorKind::Invalid, path.shown(), detail).with_value(value.clone())
        });
    }

    /// An error without a field, as upstream reports everything that is no `errors.Validation`.
    pub(crate) fn plain(&mut self, detail: impl FnOnce() -> String) {
        self.push(|| {
            FieldError::new(FieldErrorKind::Invalid, "<nil>", detail()).with_value(Value::from(""))
        });
    }
}

/// Checks a value and all below it.
///
/// Errors of a value that equals its old value are dropped (ratcheting).
pub(crate) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let (start, failed_before) = (report.errors.len(), report.failed);
    report.failed = false;
    check_value(node, value, old, path, report);
    if report.failed && old.is_some_and(|old| listtype::is_unchanged(node, value, old)) {
        report.errors.truncate(start);
        report.failed = false;
    }
    report.failed |= failed_before;
}

fn check_value(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let checks = node.checks.as_deref();
    report.matched += 2;
    check_type(node, checks, value, path, report);
    if let Some(allowed) = checks.and_then(|checks| checks.allowed.as_ref())
        && !allowed.contains(value)
    {
        report.push(|| {
            FieldError::new(
                FieldErrorKind::NotSupported,
                path.shown(),
                allowed.detail.clone(),
            )
            .with_value(value.clone())
        });
    }
    match value {
        Value::Null => return,
        Value::Bool(_) => {}
        Value::Number(number) => {
            if let Some(checks) = checks {
                check_number(node, checks, number, value, path, report);
            }
        }
        Value::String(text) => {
            if let Some(checks) = checks {
                check_string(checks, text, value, path, report);
            }
        }
        Value::Array(items) => check_array(node, items, old, path, report),
        Value::Object(map) => check_object(node, map, old, path, report),
    }
    if let Some(checks) = checks.filter(|checks| checks.has_junctors()) {
        junctor::check(checks, value, path, report);
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) fn has_type(kind: NodeType, value: &Value) -> bool {
    match (kind, value) {
        (NodeType::Integer, Value::Number(number)) => number::is_integer(number),
        (NodeType::Object, Value::Object(_))
        | (NodeType::Array, Value::Array(_))
        | (NodeType::String, Value::String(_))
        | (NodeType::Number, Value::Number(_))
        | (NodeType::Boolean, Value::Bool(_)) => true,
        _ => false,
    }
}

fn check_type(
    node: &Node,
    checks: Option<&Checks>,
    value: &Value,
    path: &Path<'_>,
    report: &mut Report,
) {
    let wanted = match (node.int_or_string, node.kind) {
        (true, _) if has_type(NodeType::Integer, value) || value.is_string() => None,
        (true, _) => Some("integer,string"),
        (false, None) => None,
        (false, Some(kind)) if has_type(kind, value) => None,
        (false, Some(kind)) => Some(kind.name()),
    };
    let Some(wanted) = wanted.filter(|_| !(value.is_null() && node.nullable)) else {
        report.matched += 1;
        return;
    };
    let format = checks.and_then(|checks| checks.format.as_ref());
    report.push(|| {
        // A quirk of upstream: scalars that are no strings are compared by format, if there is one.
        let format = format.filter(|_| node.kind == Some(NodeType::String));
        let (wanted, found) = match (format, value) {
            (Some(format), Value::Bool(_) | Value::Object(_)) => (format.name.as_str(), ""),
            (Some(format), Value::Number(number)) => {
                let found = if number.is_i64() { "int64" } else { "float64" };
                (format.name.as_str(), found)
            }
            _ => (wanted, type_name(value)),
        };
        let text = path.text();
        let detail = format!(
            "{text} in body must be of type {wanted}: {}",
            Value::from(found)
        );
        FieldError::new(FieldErrorKind::TypeInvalid, path.shown(), detail)
            .with_value(Value::from(found))
    });
}

fn check_number(
    node: &Node,
    checks: &Checks,
    number: &Number,
    value: &Value,
    path: &Path<'_>,
    report: &mut Report,
) {
    report.matched += 1;
    check_range(node, checks, number, path, report);
    if let Some(factor) = &checks.multiple_of
        && !number::is_multiple(number, factor)
    {
        let shown = || {
            format!(
                "should be a multiple of {}",
                number::show_bound(factor, number)
            )
        };
        report.invalid(path, value, shown);
    }
    use std::cmp::Ordering::{Equal, Greater, Less};
    let beyond = |bound: &Bound, side| match number::compare(number, &bound.value) {
        Some(Equal) => bound.exclusive,
        Some(order) => order == side,
        None => true,
    };
    if let Some(bound) = checks.minimum.as_ref().filter(|bound| beyond(bound, Less)) {
        let than = if bound.exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        let shown = || {
            format!(
                "should be {than} {}",
                number::show_bound(&bound.value, number)
            )
        };
        report.invalid(path, value, shown);
    }
    if let Some(bound) = checks
        .maximum
        .as_ref()
        .filter(|bound| beyond(bound, Greater))
    {
        let than = if bound.exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        let shown = || {
            format!(
                "should be {than} {}",
                number::show_bound(&bound.value, number)
            )
        };
        report.invalid(path, value, shown);
    }
}

/// Whether a number fits its type and format.
fn check_range(
    node: &Node,
    checks: &Checks,
    number: &Number,
    path: &Path<'_>,
    report: &mut Report,
) {
    use crate::format::FormatKind;
    let Some(format) = &checks.format else {
        return;
    };
    let fits = match format.kind {
        FormatKind::Int32 => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => i32::try_from(value).is_ok(),
            (None, Some(value)) => value.abs() <= f64::from(i32::MAX),
            (None, None) => false,
        },
        FormatKind::Float => number
            .as_f64()
            .is_some_and(|n| n.abs() <= f64::from(f32::MAX)),
        _ => true,
    };
    if !fits {
        let kind = node.kind.map_or("", NodeType::name);
        report.plain(|| {
            let (format, path) = (&format.name, path.text());
            format!("Checked value must be of type {kind} with format {format} in {path}")
        });
    }
}

fn check_string(checks: &Checks, text: &str, value: &Value, path: &Path<'_>, report: &mut Report) {
    check_text(checks, text, value, path, report);
    if let Some(format) = checks
        .format
        .as_ref()
        .filter(|format| !format.matches(text))
    {
        report.push(|| {
            let (at, name) = (path.text(), &format.name);
            let detail = format!("{at} in body must be of type {name}: {value}");
            FieldError::new(FieldErrorKind::TypeInvalid, path.shown(), detail)
                .with_value(value.clone())
        });
    }
}

/// Length and pattern; the first that fails is reported.
fn check_text(checks: &Checks, text: &str, value: &Value, path: &Path<'_>, report: &mut Report) {
    if checks.length_max.is_some() || checks.length_min.is_some() {
        let length = text.chars().count() as u64;
        if let Some(max) = checks.length_max.filter(|max| length > *max) {
            report.push(|| {
                // Kubernetes counts characters and says bytes.
                let unit = if max == 1 { "byte" } else { "bytes" };
                let detail = format!("may not be more than {max} {unit}");
                FieldError::new(FieldErrorKind::TooLong, path.shown(), detail)
            });
            return;
        }
        if let Some(min) = checks.length_min.filter(|min| length < *min) {
            report.invalid(path, value, || {
                format!("should be at least {min} chars long")
            });
            return;
        }
    }
    if let Some(pattern) = checks
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.matches(text))
    {
        report.invalid(path, value, || format!("should match '{}'", pattern.text));
    }
}

fn too_many(path: &Path<'_>, count: u64, max: u64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    let detail = format!("must have at most {max} {unit}");
    FieldError::new(FieldErrorKind::TooMany, path.shown(), detail).with_value(Value::from(count))
}

fn check_array(
    node: &Node,
    items: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    report.matched += 1;
    if let Some(item) = node.items.as_deref() {
        let old = listtype::OldItems::new(node, old);
        for (i, value) in items.iter().enumerate() {
            check(item, value, old.find(value), &path.index(i), report);
        }
    }
    let Some(checks) = node.checks.as_deref() else {
        return;
    };
    let count = items.len() as u64;
    if let Some(min) = checks.items_min.filter(|min| count < *min) {
        report.invalid(path, &Value::from(count), || {
            format!("should have at least {min} items")
        });
    }
    if let Some(max) = checks.items_max.filter(|max| count > *max) {
        report.push(|| too_many(path, count, max));
    }
}

fn check_object(
    node: &Node,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let checks = node.checks.as_deref();
    if let Some(checks) = checks {
        let count = map.len() as u64;
        if let Some(min) = checks.properties_min.filter(|min| count < *min) {
            report.invalid(path, &Value::from(count), || {
                format!("should have at least {min} properties")
            });
        }
        if let Some(max) = checks.properties_max.filter(|max| count > *max) {
            report.push(|| too_many(path, count, max));
        }
    }
    let old = old.and_then(Value::as_object);
    for (key, value) in map {
        let at = path.field(key);
        if let Some(child) = node.child(key) {
            // Old and new are converted to one version, so a change of these does not show.
            let is_type =
                matches!(path, Path::Root) && matches!(key.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !is_type).and_then(|old| old.get(key));
            check(child, value, old, &at, report);
        } else if checks.is_some_and(|checks| checks.closed) {
            report.push(|| {
                let detail = format!("{} in body is a forbidden property", at.text());
                FieldError::new(FieldErrorKind::Invalid, path.shown(), detail)
                    .with_value(Value::from(key.as_str()))
            });
        }
    }
    for name in checks.map_or(&[][..], |checks| &checks.required) {
        if !map.contains_key(name) {
            report.push(|| FieldError::new(FieldErrorKind::Required, path.field(name).text(), ""));
        }
    }
}
