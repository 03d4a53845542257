//! The body of a PUT: parsed, pruned and checked (SECA sections 2.1, 3.2).
//!
//! Tolerance follows section 3.2: members that SECA does not know are ignored wherever they are
//! (the client is told by a `Warning`), `null` means absent, `status` and all of `metadata` but
//! the region are ignored. What is known must have the right type and bounds.

use ecp_meta::names::is_dotted_name;
use ecp_schema::FieldError;
use ecp_xrds::{CROSSPLANE_SPEC_FIELDS, ENVELOPE_SPEC_FIELDS, KindInfo, Scope};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::cache::Entry;
use crate::error::{ApiError, ErrorKind};
use crate::limits;
use crate::path::Target;
use crate::power::strictly_after;

/// What a client sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    common: Map<String, Value>,
    spec: Map<String, Value>,
    /// `metadata.region`, unless empty.
    pub(crate) region: Option<String>,
    /// JSON pointers of members that were ignored.
    ignored: Vec<String>,
}

impl Document {
    /// Parses a body.
    ///
    /// # Errors
    /// It is not JSON ([`ErrorKind::Malformed`]), or a member has the wrong type.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let body: Value = serde_json::from_slice(bytes).map_err(|e| {
            ApiError::new(
                ErrorKind::Malformed,
                format!("the body is not valid JSON: {e}"),
            )
        })?;
        let Value::Object(mut body) = body else {
            return Err(invalid("the body must be an object", ""));
        };
        let mut common = Map::new();
        for field in ["labels", "annotations", "extensions"] {
            match body.remove(field) {
                None | Some(Value::Null) => {}
                Some(value @ Value::Object(_)) => {
                    common.insert(field.into(), value);
                }
                Some(_) => {
                    return Err(invalid(
                        format!("{field} must be an object"),
                        &format!("/{field}"),
                    ));
                }
            }
        }
        let mut spec = match body.remove("spec") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(spec)) => spec,
            Some(_) => return Err(invalid("spec must be an object", "/spec")),
        };
        drop_nulls(&mut spec);
        check_keys(&common, &mut Vec::new())?;
        check_keys(&spec, &mut vec!["spec".into()])?;
        Ok(Self {
            common,
            spec,
            region: region(body.get("metadata"))?,
            ignored: body
                .keys()
                .filter(|key| !["metadata", "status"].contains(&key.as_str()))
                .map(|key| format!("/{}", escape(key)))
                .collect(),
        })
    }
}

fn region(metadata: Option<&Value>) -> Result<Option<String>, ApiError> {
    match metadata {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(metadata)) => match metadata.get("region") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(region)) => Ok(Some(region.clone()).filter(|r| !r.is_empty())),
            Some(_) => Err(invalid(
                "metadata.region must be a text",
                "/metadata/region",
            )),
        },
        Some(_) => Err(invalid("metadata must be an object", "/metadata")),
    }
}

/// Removes members that are null, at any depth: `null` means absent.
fn drop_nulls(map: &mut Map<String, Value>) {
    map.retain(|_, v| !v.is_null());
    for value in map.values_mut() {
        drop_nulls_in(value);
    }
}

fn drop_nulls_in(value: &mut Value) {
    match value {
        Value::Object(map) => drop_nulls(map),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Refuses names of members with control characters: they could only be in free objects, and a
/// control plane need not take them.
fn check_keys(map: &Map<String, Value>, path: &mut Vec<String>) -> Result<(), ApiError> {
    for (key, value) in map {
        path.push(escape(key));
        if key.chars().any(char::is_control) {
            let pointer = format!("/{}", path.join("/"));
            return Err(invalid(
                "the name of a member must not hold control characters",
                &pointer,
            ));
        }
        check_keys_in(value, path)?;
        path.pop();
    }
    Ok(())
}

fn check_keys_in(value: &Value, path: &mut Vec<String>) -> Result<(), ApiError> {
    match value {
        Value::Object(map) => check_keys(map, path),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                path.push(i.to_string());
                check_keys_in(item, path)?;
                path.pop();
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// A `spec` that the control plane will take, and what was left out of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checked {
    pub(crate) spec: Value,
    /// Paths of references that name nothing and were accepted all the same.
    pub(crate) deferred: Vec<String>,
    /// JSON pointers of members that were ignored.
    pub(crate) ignored: Vec<String>,
}

impl Checked {
    /// The same for an intent that is sent again unchanged: it counts as a change (SECA section
    /// 3.3), so something must tell it from the one before.
    ///
    /// # Errors
    /// There is no later time than that of the last one.
    pub(crate) fn repeated(&self, last: &Entry) -> Result<Self, &'static str> {
        let last = last.spec("repeatedAt").and_then(Value::as_str);
        let mut repeated = self.clone();
        repeated.spec["repeatedAt"] = strictly_after(last, Timestamp::now())?.into();
        Ok(repeated)
    }
}

impl Document {
    /// The object `spec` for a document, checked as the API server will check it.
    ///
    /// The SECA name stands in `spec` only where the object's differs, and once it does or does
    /// not, it stays so.
    ///
    /// # Errors
    /// Everything that is wrong, each with a pointer into the body.
    pub(crate) fn check(
        self,
        target: &Target,
        name: &str,
        region: Option<&str>,
        existing: Option<&Entry>,
    ) -> Result<Checked, ApiError> {
        let info = target.info;
        let Self {
            common,
            mut spec,
            mut ignored,
            ..
        } = self;
        ignored.extend(set_reserved_aside(info, &mut spec)?);
        if !common.is_empty() {
            spec.insert("commonData".into(), Value::Object(common));
        }
        if let Some(region) = region.filter(|_| info.regional()) {
            spec.insert("region".into(), region.into());
        }
        if info.scope == Scope::Network {
            spec.insert("network".into(), target.network.as_str().into());
        }
        let spell_out = match existing {
            Some(entry) => entry.spec("name").is_some(),
            None => target.object_name(name) != name,
        };
        if spell_out {
            spec.insert("name".into(), name.into());
        }
        let mut spec = Value::Object(spec);
        let pruned = ecp_xrds::prune(info, &mut spec);
        ignored.extend(pruned.iter().map(|path| pointer(path)));
        let errors = match existing.and_then(|e| e.object().get("spec")) {
            Some(old) => ecp_xrds::validate_update(info, &spec, old),
            None => ecp_xrds::validate(info, &spec),
        };
        if errors.is_empty() {
            let deferred = Vec::new();
            Ok(Checked {
                spec,
                deferred,
                ignored,
            })
        } else {
            Err(refused(&errors, &ignored))
        }
    }
}

/// Names of `spec` that are not SECA's. Where the spec is free they cannot be used; elsewhere
/// they are members that SECA does not know.
fn set_reserved_aside(
    info: &KindInfo,
    spec: &mut Map<String, Value>,
) -> Result<Vec<String>, ApiError> {
    let reserved =
        |name: &str| ENVELOPE_SPEC_FIELDS.contains(&name) || CROSSPLANE_SPEC_FIELDS.contains(&name);
    let found: Vec<String> = spec.keys().filter(|k| reserved(k)).cloned().collect();
    if let (Some(first), "Workspace") = (found.first(), info.kind) {
        let mut error = ApiError::new(
            ErrorKind::Invalid,
            format!("spec.{first} is reserved and cannot be used in a free spec"),
        );
        for name in &found {
            error = error.at_pointer(format!("/spec/{}", escape(name)));
        }
        return Err(error);
    }
    spec.retain(|name, _| !reserved(name));
    Ok(found
        .iter()
        .map(|name| format!("/spec/{}", escape(name)))
        .collect())
}

/// What was ignored is told as well: a misspelt member is often the cause of a missing one.
fn refused(errors: &[FieldError], ignored: &[String]) -> ApiError {
    let detail: Vec<String> = errors
        .iter()
        .map(|e| format!("{}: {}", shown(&e.field), e.body()))
        .take(limits::PROBLEM_SOURCES_MAX)
        .chain(
            ignored
                .iter()
                .map(|pointer| format!("{pointer} is unknown and was ignored"))
                .take(limits::PROBLEM_SOURCES_MAX),
        )
        .collect();
    let mut error = ApiError::new(ErrorKind::Invalid, detail.join("; "));
    for e in errors {
        error = error.at_pointer(pointer(&e.field));
    }
    error
}

/// The refusal of an API server, as a refusal of the body.
pub(crate) fn refused_by_server(message: &str, causes: &[(String, String)]) -> ApiError {
    if causes.is_empty() {
        tracing::warn!(
            message,
            "the control plane refused an object without saying why"
        );
        return ApiError::new(ErrorKind::Invalid, "the control plane refused the resource");
    }
    let detail: Vec<String> = causes
        .iter()
        .take(limits::PROBLEM_SOURCES_MAX)
        .map(|(field, message)| format!("{}: {message}", shown(field)))
        .collect();
    let mut error = ApiError::new(ErrorKind::Invalid, detail.join("; "));
    for (field, _) in causes {
        error = error.at_pointer(pointer(field));
    }
    error
}

/// Fields of the object that are elsewhere in a document: object path, document path.
const MOVED: [(&str, &str); 4] = [
    ("spec.commonData.", ""),
    ("spec.region", "metadata.region"),
    ("spec.name", "metadata.name"),
    ("spec.network", "metadata.network"),
];

/// A field path of the object as a path in the document.
fn shown(field: &str) -> String {
    for (from, to) in MOVED {
        if let Some(rest) = field.strip_prefix(from)
            && (from.ends_with('.') || rest.is_empty())
        {
            return format!("{to}{rest}");
        }
    }
    field.into()
}

/// A field path of the object (`spec.items[0].name`) as a JSON pointer into the document.
pub(crate) fn pointer(field: &str) -> String {
    let field = shown(field);
    if field.is_empty() || field == "<nil>" {
        return String::new();
    }
    // Keys of these maps may hold dots and brackets, and have nothing below them.
    for map in ["labels", "annotations"] {
        let key = field
            .strip_prefix(map)
            .and_then(|rest| rest.strip_prefix('.').or_else(|| rest.strip_prefix('[')));
        if let Some(key) = key {
            let key = key.strip_suffix(']').unwrap_or(key);
            return format!("/{map}/{}", escape(key));
        }
    }
    let mut pointer = String::new();
    for part in field.split(['.', '[']) {
        let part = part.strip_suffix(']').unwrap_or(part).trim_matches('"');
        pointer.push('/');
        pointer.push_str(&escape(part));
    }
    pointer
}

/// Escapes one token of a JSON pointer (RFC 6901).
fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

fn invalid(detail: impl Into<String>, pointer: &str) -> ApiError {
    ApiError::new(ErrorKind::Invalid, detail).at_pointer(pointer)
}

/// Checks a name of the URL (section 2.1).
///
/// # Errors
/// [`ErrorKind::Invalid`], naming the member of `metadata` that the name stands for.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), ApiError> {
    let reason = if name.len() > limits::NAME_LEN_MAX {
        format!("must have {} characters at most", limits::NAME_LEN_MAX)
    } else if is_dotted_name(name) {
        return Ok(());
    } else {
        "must be lower-case letters and digits, with single '-' or '.' inside".to_owned()
    };
    Err(ApiError::new(
        ErrorKind::Invalid,
        format!("metadata.{what}: the {what} in the path {reason}"),
    )
    .at_pointer(format!("/metadata/{what}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_and_absent_are_the_same() {
        let nulls = Document::parse(
            br#"{"labels":null,"metadata":null,"spec":{"a":null,"b":[{"c":null}]},"status":null}"#,
        )
        .expect("parsed");
        let absent = Document::parse(br#"{"spec":{"b":[{}]}}"#).expect("parsed");
        assert_eq!(nulls, absent);
        assert_eq!(Document::parse(br#"{"spec":null}"#), Document::parse(b"{}"));
    }

    #[test]
    fn wrong_types_name_the_member() {
        for (body, pointer) in [
            ("[]", ""),
            ("3", ""),
            (r#"{"labels":[]}"#, "/labels"),
            (r#"{"annotations":"x"}"#, "/annotations"),
            (r#"{"extensions":1}"#, "/extensions"),
            (r#"{"spec":[]}"#, "/spec"),
            (r#"{"metadata":[]}"#, "/metadata"),
            (r#"{"metadata":{"region":7}}"#, "/metadata/region"),
        ] {
            let error = Document::parse(body.as_bytes()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{body}");
            assert_eq!(error.sources()[0].pointer, pointer, "{body}");
        }
    }

    #[test]
    fn names_of_members_are_printable() {
        for (body, pointer) in [
            (r#"{"spec":{"a":[{"\u001f":1}]}}"#, "/spec/a/0/\u{1f}"),
            (r#"{"extensions":{"x":{"\u0000":1}}}"#, "/extensions/x/\0"),
            (r#"{"labels":{"a\nb":"c"}}"#, "/labels/a\nb"),
        ] {
            let error = Document::parse(body.as_bytes()).expect_err("refused");
            assert_eq!(error.sources()[0].pointer, pointer, "{body}");
        }
        assert!(Document::parse(r#"{"spec":{"ä/~ ":1,"":2}}"#.as_bytes()).is_ok());
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        let deep = "[".repeat(100_000);
        for body in ["", "{", "{\"a\":}", "\u{1}", deep.as_str()] {
            let error = Document::parse(body.as_bytes()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Malformed);
        }
        assert!(Document::parse(b"\xff").is_err());
    }

    #[test]
    fn an_empty_region_is_no_region() {
        let region = |body: &str| Document::parse(body.as_bytes()).expect("parsed").region;
        assert_eq!(region(r#"{"metadata":{"region":""}}"#), None);
        assert_eq!(region(r#"{"metadata":{"region":"r"}}"#), Some("r".into()));
    }

    #[test]
    fn pointers_lead_into_the_document() {
        for (field, want) in [
            ("spec.sizeGB", "/spec/sizeGB"),
            ("spec.items[0].name", "/spec/items/0/name"),
            ("spec.commonData.labels.a.b/c~d", "/labels/a.b~1c~0d"),
            ("spec.commonData.labels[a.b]", "/labels/a.b"),
            ("spec.commonData.labels", "/labels"),
            ("spec.commonData.extensions.x.y", "/extensions/x/y"),
            ("spec.region", "/metadata/region"),
            ("spec.regional", "/spec/regional"),
            ("spec.name", "/metadata/name"),
            ("<nil>", ""),
            ("", ""),
        ] {
            assert_eq!(pointer(field), want, "{field}");
        }
    }

    #[test]
    fn names_are_checked_and_named() {
        for ok in ["a", "a-b.c-1", &"a".repeat(128)] {
            assert!(check_name("name", ok).is_ok(), "{ok}");
        }
        for bad in [
            "",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            "..",
            "../x",
            "a/b",
            "ä",
            &"a".repeat(129),
        ] {
            let error = check_name("name", bad).expect_err("refused");
            assert_eq!(error.sources()[0].pointer, "/metadata/name", "{bad}");
        }
    }

    fn check(kind: &str, body: &str) -> Result<Checked, ApiError> {
        let target = Target {
            info: ecp_xrds::by_kind(kind).expect("kind"),
            tenant: "t".into(),
            workspace: "w".into(),
            network: "n".into(),
            region: "r".into(),
            name: Some("x".into()),
            action: None,
        };
        let document = Document::parse(body.as_bytes()).expect("parsed");
        document.check(&target, "x", Some("r"), None)
    }

    #[test]
    fn unknown_members_are_ignored_and_reported() {
        let checked = check(
            "BlockStorage",
            r#"{"labels":{"a":"b"},"lables":{},"status":{},"metadata":{"name":"y"},
                "spec":{"sizeGB":1,"skuRef":{"resource":"s","odd":1},
                "crossplane":{"compositionRef":{"name":"evil"}},"region":"evil","extra":{}}}"#,
        )
        .expect("accepted");
        assert_eq!(
            checked.spec,
            json!({
                "sizeGB": 1, "skuRef": {"resource": "s"}, "region": "r",
                "commonData": {"labels": {"a": "b"}},
            })
        );
        let mut ignored = checked.ignored;
        ignored.sort();
        assert_eq!(
            ignored,
            [
                "/lables",
                "/spec/crossplane",
                "/spec/extra",
                "/spec/region",
                "/spec/skuRef/odd"
            ]
        );
    }

    #[test]
    fn a_refusal_tells_what_was_ignored() {
        let error = check(
            "BlockStorage",
            r#"{"lables":{},"spec":{"sizeGb":1,"skuRef":{"resource":"s"}}}"#,
        )
        .expect_err("refused");
        assert_eq!(
            error.detail(),
            "spec.sizeGB: Required value; /lables is unknown and was ignored; \
             /spec/sizeGb is unknown and was ignored"
        );
        let pointers: Vec<_> = error.sources().iter().map(|s| s.pointer.as_str()).collect();
        assert_eq!(pointers, ["/spec/sizeGB"]);
    }

    #[test]
    fn faults_of_the_spec_and_of_common_data_name_their_field() {
        let long = "x".repeat(64);
        for (body, want) in [
            (
                r#"{"spec":{"sizeGB":0,"skuRef":{"resource":"s"}}}"#.to_owned(),
                "/spec/sizeGB",
            ),
            (
                r#"{"spec":{"sizeGB":"1","skuRef":{"resource":"s"}}}"#.to_owned(),
                "/spec/sizeGB",
            ),
            (r#"{"spec":{"sizeGB":1}}"#.to_owned(), "/spec/skuRef"),
            (
                format!(
                    r#"{{"labels":{{"k.e/y":"{long}"}},"spec":{{"sizeGB":1,"skuRef":{{"resource":"s"}}}}}}"#
                ),
                "/labels/k.e~1y",
            ),
        ] {
            let error = check("BlockStorage", &body).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(error.sources()[0].pointer, want, "{body}: {error}");
        }
    }

    #[test]
    fn a_free_spec_keeps_all_but_reserved_names() {
        let checked = check("Workspace", r#"{"spec":{"team":{"a":[1]}}}"#).expect("accepted");
        assert_eq!(checked.spec, json!({"team": {"a": [1]}, "region": "r"}));
        let error = check("Workspace", r#"{"spec":{"commonData":{},"crossplane":{}}}"#)
            .expect_err("refused");
        assert_eq!(error.sources().len(), 2);
        assert_eq!(error.sources()[0].pointer, "/spec/commonData");
    }
}
