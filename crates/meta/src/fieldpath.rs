//! Crossplane field paths, such as `spec.items[0].labels[app.kubernetes.io/name]`.
//!
//! Grammar of crossplane-runtime's `pkg/fieldpath`: dots separate fields, brackets hold an index,
//! a field name or `*`; a field name in brackets may be quoted and may contain dots.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::limits::{FIELD_PATH_DEPTH_MAX, FIELD_PATH_INDEX_MAX};

/// A parsed field path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<Segment>);

/// One step of a field path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Field(String),
    /// An element of an array.
    Index(usize),
    /// Every member or element.
    Wildcard,
}

/// A field path that cannot be parsed or followed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FieldPathError {
    /// The text breaks the grammar.
    #[error("field path {path:?}: {reason}")]
    Syntax {
        /// The text.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A step does not fit the value it meets.
    #[error("{at}: not {expected}")]
    Mismatch {
        /// The path up to the step.
        at: String,
        /// `an object` or `an array`.
        expected: &'static str,
    },
    /// An index beyond what a path may create.
    #[error("{at}: index is larger than {FIELD_PATH_INDEX_MAX}")]
    IndexTooLarge {
        /// The path up to the index.
        at: String,
    },
}

impl FieldPath {
    /// A path from its segments.
    pub fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The value at the path; `None` where any step is missing or the path has a wildcard.
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |v, segment| match segment {
            Segment::Field(f) => v.as_object()?.get(f),
            Segment::Index(i) => v.as_array()?.get(*i),
            Segment::Wildcard => None,
        })
    }

    /// Every concrete path that a path with wildcards stands for in `value`.
    pub fn expand(&self, value: &Value) -> Vec<FieldPath> {
        let mut found = vec![(Vec::new(), value)];
        for segment in &self.0 {
            let mut next = Vec::new();
            for (path, v) in found {
                let mut push = |s: Segment, v| {
                    let mut p: Vec<Segment> = path.clone();
                    p.push(s);
                    next.push((p, v));
                };
                match (segment, v) {
                    (Segment::Field(f), Value::Object(m)) => {
                        if let Some(v) = m.get(f) {
                            push(segment.clone(), v);
                        }
                    }
                    (Segment::Index(i), Value::Array(a)) => {
                        if let Some(v) = a.get(*i) {
                            push(segment.clone(), v);
                        }
                    }
                    (Segment::Wildcard, Value::Array(a)) => {
                        for (i, v) in a.iter().enumerate() {
                            push(Segment::Index(i), v);
                        }
                    }
                    (Segment::Wildcard, Value::Object(m)) => {
                        for (k, v) in m {
                            push(Segment::Field(k.clone()), v);
                        }
                    }
                    _ => {}
                }
            }
            found = next;
        }
        found.into_iter().map(|(path, _)| FieldPath(path)).collect()
    }

    /// Sets the value at the path, creating objects and arrays on the way; array gaps become null.
    ///
    /// # Errors
    /// A step meets a value of another shape, an index is too large, or the path has a wildcard.
    pub fn set(&self, value: &mut Value, new: Value) -> Result<(), FieldPathError> {
        let mut at = value;
        for (depth, segment) in self.0.iter().enumerate() {
            let here = || FieldPath(self.0[..depth].to_vec()).to_string();
            at = match segment {
                Segment::Field(f) => {
                    if at.is_null() {
                        *at = Value::Object(Map::new());
                    }
                    let map = at.as_object_mut().ok_or_else(|| FieldPathError::Mismatch {
                        at: here(),
                        expected: "an object",
                    })?;
                    map.entry(f.as_str()).or_insert(Value::Null)
                }
                Segment::Index(i) => {
                    if *i > FIELD_PATH_INDEX_MAX {
                        return Err(FieldPathError::IndexTooLarge { at: here() });
                    }
                    if at.is_null() {
                        *at = Value::Array(Vec::new());
                    }
                    let array = at.as_array_mut().ok_or_else(|| FieldPathError::Mismatch {
                        at: here(),
                        expected: "an array",
                    })?;
                    if array.len() <= *i {
                        array.resize(i + 1, Value::Null);
                    }
                    &mut array[*i]
                }
                Segment::Wildcard => {
                    return Err(FieldPathError::Syntax {
                        path: self.to_string(),
                        reason: "a path with a wildcard cannot be set",
                    });
                }
            };
        }
        *at = new;
        Ok(())
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(path: &str) -> Result<Self, FieldPathError> {
        let fail = |reason| FieldPathError::Syntax {
            path: path.into(),
            reason,
        };
        let mut segments = Vec::new();
        let mut rest = path;
        let mut after_dot = true;
        while !rest.is_empty() {
            if segments.len() == FIELD_PATH_DEPTH_MAX {
                return Err(fail("too deep"));
            }
            if let Some(inner) = rest.strip_prefix('[') {
                if after_dot && !segments.is_empty() {
                    return Err(fail("unexpected '['"));
                }
                let (segment, tail) = bracketed(inner).map_err(fail)?;
                segments.push(segment);
                rest = tail;
            } else {
                if !after_dot {
                    return Err(fail("'.' is missing"));
                }
                let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(fail("a field name is empty"));
                }
                segments.push(match &rest[..end] {
                    "*" => Segment::Wildcard,
                    field => Segment::Field(field.into()),
                });
                rest = &rest[end..];
            }
            after_dot = false;
            if let Some(tail) = rest.strip_prefix('.') {
                if tail.is_empty() {
                    return Err(fail("a field name is empty"));
                }
                after_dot = true;
                rest = tail;
            } else if rest.starts_with(']') {
                return Err(fail("unexpected ']'"));
            }
        }
        Ok(Self(segments))
    }
}

fn bracketed(inner: &str) -> Result<(Segment, &str), &'static str> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (name, tail) = quoted.split_once(quote).ok_or("a quote is not closed")?;
            let tail = tail.strip_prefix(']').ok_or("']' is missing")?;
            return Ok((Segment::Field(name.into()), tail));
        }
    }
    let (name, tail) = inner.split_once(']').ok_or("']' is missing")?;
    if name.contains('[') {
        return Err("unexpected '['");
    }
    let segment = match name {
        "" => return Err("brackets are empty"),
        "*" => Segment::Wildcard,
        _ => match name.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Field(name.into()),
        },
    };
    Ok((segment, tail))
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(n) => write!(f, "[{n}]")?,
                Segment::Wildcard => f.write_str("[*]")?,
                Segment::Field(s) if s.contains('.') => write!(f, "[{s}]")?,
                Segment::Field(s) if i == 0 => f.write_str(s)?,
                Segment::Field(s) => write!(f, ".{s}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(s: &str) -> FieldPath {
        s.parse().unwrap()
    }

    #[test]
    fn paths_parse_and_print() {
        for (text, printed) in [
            ("spec.items[0].name", "spec.items[0].name"),
            ("metadata.annotations[a.b/c]", "metadata.annotations[a.b/c]"),
            (
                "metadata.annotations['a.b/c']",
                "metadata.annotations[a.b/c]",
            ),
            ("spec[0][1]", "spec[0][1]"),
            ("spec.*.x", "spec[*].x"),
            ("spec[x].y", "spec.x.y"),
        ] {
            assert_eq!(path(text).to_string(), printed);
        }
        for bad in [
            "a..b", "a.", ".a", "a[", "a]", "a[]", "a[0]b", "a[['x']]", "a.[0]",
        ] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn set_creates_what_is_missing_and_get_reads_it() {
        let mut v = json!({});
        path("spec.list[1].a").set(&mut v, json!(1)).unwrap();
        assert_eq!(v, json!({"spec": {"list": [null, {"a": 1}]}}));
        assert_eq!(path("spec.list[1].a").get(&v), Some(&json!(1)));
        assert_eq!(path("spec.none").get(&v), None);
        assert!(path("spec.list.a").set(&mut v, json!(1)).is_err());
        assert!(path("spec.list[9999]").set(&mut v, json!(1)).is_err());
    }

    #[test]
    fn wildcards_expand() {
        let v = json!({"a": [{"b": 1}, {"c": 2}], "d": {"x": {"b": 3}}});
        let paths = |p: &str| {
            path(p)
                .expand(&v)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(paths("a[*].b"), ["a[0].b"]);
        assert_eq!(paths("d[*].b"), ["d.x.b"]);
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics_and_printing_is_stable(s in "[a-c.\\[\\]*0-9'\"]{0,24}") {
            if let Ok(p) = s.parse::<FieldPath>() {
                let printed = p.to_string();
                if let Ok(q) = printed.parse::<FieldPath>() {
                    proptest::prop_assert_eq!(q.to_string(), printed);
                }
            }
        }
    }
}
