//! The JSONPath dialect of printer columns: that of `k8s.io/client-go/util/jsonpath`.
//!
//! It is not RFC 9535: paths start with `.`, names may hold escaped dots (`.a\.b`), and filters
//! compare one path with one literal. Missing keys give no result.

use std::cmp::Ordering;

use serde_json::Value;

/// Values that a step may lead to: several `..` in one path find a value in every way there is.
const FOUND_MAX: usize = 4096;
/// Filters may hold paths that hold filters, up to this depth.
const DEPTH_MAX: usize = 4;

/// A compiled path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// A text is not a path.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid JSONPath at byte {at}: {reason}")]
pub struct JsonPathError {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Any of several fields or elements, in the order written.
    Union(Vec<Pick>),
    Wildcard,
    /// The value and everything under it.
    Recursive,
    Filter(Box<Filter>),
}

#[derive(Clone, Debug, PartialEq)]
enum Pick {
    Field(String),
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// `None` asks whether the left side exists.
    compare: Option<(Operator, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Compiles a path such as `.status.conditions[?(@.type=="Ready")].status`.
    ///
    /// # Errors
    /// The text is not a path; the error says where.
    pub fn compile(text: &str) -> Result<Self, JsonPathError> {
        Parser { text, at: 0 }.whole(0)
    }

    /// All values the path leads to, up to a bound that no table needs.
    pub fn find<'a>(&'a self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| step.apply(value))
                .take(FOUND_MAX)
                .collect();
        }
        found
    }

    /// The first value the path leads to, if it is not null.
    pub fn first<'a>(&'a self, root: &'a Value) -> Option<&'a Value> {
        self.find(root)
            .into_iter()
            .next()
            .filter(|value| !value.is_null())
    }
}

impl Step {
    fn apply<'a>(&'a self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name.as_str()).into_iter().collect(),
            Self::Union(picks) => picks.iter().flat_map(|pick| pick.apply(value)).collect(),
            Self::Wildcard => children(value),
            Self::Recursive => {
                let mut all = Vec::new();
                descend(value, &mut all);
                all
            }
            Self::Filter(filter) => match value {
                Value::Array(items) => items.iter().filter(|item| filter.accepts(item)).collect(),
                _ => Vec::new(),
            },
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    all.push(value);
    for child in children(value) {
        descend(child, all);
    }
}

impl Pick {
    fn apply<'a>(&'a self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name.as_str()).into_iter().collect(),
            Self::Index(index) => {
                let Value::Array(items) = value else {
                    return Vec::new();
                };
                absolute(*index, items.len())
                    .and_then(|i| items.get(i))
                    .into_iter()
                    .collect()
            }
            Self::Slice { start, end, step } => {
                let Value::Array(items) = value else {
                    return Vec::new();
                };
                let clamp = |bound: Option<i64>, default: usize| match bound {
                    None => default,
                    Some(bound) => absolute(bound, items.len()).unwrap_or(0).min(items.len()),
                };
                let (start, end) = (clamp(*start, 0), clamp(*end, items.len()));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                items
                    .get(start..end)
                    .unwrap_or_default()
                    .iter()
                    .step_by(step)
                    .collect()
            }
        }
    }
}

/// A negative index counts from the end.
fn absolute(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    usize::try_from(if index < 0 { index + len } else { index }).ok()
}

impl Filter {
    fn accepts(&self, item: &Value) -> bool {
        let Some(left) = self.left.value(item) else {
            return false;
        };
        let Some((operator, right)) = &self.compare else {
            return true;
        };
        let Some(right) = right.value(item) else {
            return false;
        };
        let Some(order) = compare(left, right) else {
            // Values of different types are different, and have no order.
            return *operator == Operator::NotEqual;
        };
        match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Operand {
    fn value<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.find(item).into_iter().next(),
            Self::Literal(value) => Some(value),
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn error<T>(&self, reason: &'static str) -> Result<T, JsonPathError> {
        Err(JsonPathError {
            at: self.at,
            reason,
        })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn whole(&mut self, depth: usize) -> Result<JsonPath, JsonPathError> {
        let mut steps = Vec::new();
        if !self.take("$") {
            self.take("@");
        }
        if self.rest().is_empty() && self.at == 0 {
            return self.error("it is empty");
        }
        while !self.rest().is_empty() {
            if self.take("..") {
                steps.push(Step::Recursive);
                if !self.rest().starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.take(".") {
                // `.[0]` is the same as `[0]`, and `.` alone is the value itself.
                if !self.rest().is_empty() && !self.rest().starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.rest().starts_with('[') {
                steps.push(self.brackets(depth)?);
            } else {
                return self.error("expected '.' or '['");
            }
        }
        Ok(JsonPath { steps })
    }

    fn field(&mut self) -> Result<Step, JsonPathError> {
        let mut name = String::new();
        let mut chars = self.rest().chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(escaped) => {
                        name.push(escaped);
                        self.at += 1 + escaped.len_utf8();
                    }
                    None => return self.error("nothing to escape"),
                },
                '.' | '[' => break,
                ',' | ']' | '$' | '@' | '{' | '}' => return self.error("unexpected character"),
                c if c.is_whitespace() => return self.error("unexpected space"),
                c => {
                    name.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        match name.as_str() {
            "" => self.error("expected a name"),
            "*" => Ok(Step::Wildcard),
            _ => Ok(Step::Field(name)),
        }
    }

    fn brackets(&mut self, depth: usize) -> Result<Step, JsonPathError> {
        let Some(length) = bracket_length(self.rest()) else {
            return self.error("unterminated '['");
        };
        let inner = self.rest().get(1..length - 1).unwrap_or_default().trim();
        let step = if inner == "*" {
            Step::Wildcard
        } else if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
            if depth >= DEPTH_MAX {
                return self.error("filters are nested too deeply");
            }
            Step::Filter(Box::new(self.filter(filter, depth + 1)?))
        } else {
            let picks = split_outside_quotes(inner, ',').into_iter().map(|part| {
                pick(part.trim()).ok_or(JsonPathError {
                    at: self.at,
                    reason: "invalid array index or key",
                })
            });
            Step::Union(picks.collect::<Result<_, _>>()?)
        };
        self.at += length;
        Ok(step)
    }

    fn filter(&self, text: &str, depth: usize) -> Result<Filter, JsonPathError> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let found = find_outside_quotes(text, |rest| {
            OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign))
        });
        let Some((at, (sign, operator))) = found else {
            return Ok(Filter {
                left: self.operand(text, depth)?,
                compare: None,
            });
        };
        let (left, right) = (&text[..at], &text[at + sign.len()..]);
        Ok(Filter {
            left: self.operand(left, depth)?,
            compare: Some((*operator, self.operand(right, depth)?)),
        })
    }

    fn operand(&self, text: &str, depth: usize) -> Result<Operand, JsonPathError> {
        let text = text.trim();
        if text.starts_with(['@', '$', '.', '[']) {
            let path = Parser { text, at: 0 }.whole(depth);
            return path
                .map(Operand::Path)
                .map_err(|e| JsonPathError { at: self.at, ..e });
        }
        if let Some(text) = quoted(text) {
            return Ok(Operand::Literal(Value::from(text)));
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Operand::Literal(value)),
            _ => self.error("expected a path, a quoted text, a number, true or false"),
        }
    }
}

/// Length of the bracketed text at the start, brackets included.
fn bracket_length(text: &str) -> Option<usize> {
    let mut open = 0usize;
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => open += 1,
            (None, ']') => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// The first place outside quotes and brackets where `probe` finds something.
fn find_outside_quotes<T>(text: &str, probe: impl Fn(&str) -> Option<T>) -> Option<(usize, T)> {
    let mut quote = None;
    let mut open = 0usize;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => open += 1,
            (None, ']') => open = open.saturating_sub(1),
            (None, _) if open == 0 => {
                if let Some(found) = probe(&text[at..]) {
                    return Some((at, found));
                }
            }
            (None, _) => {}
        }
    }
    None
}

fn split_outside_quotes(mut text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    while let Some((at, ())) =
        find_outside_quotes(text, |rest| rest.starts_with(separator).then_some(()))
    {
        parts.push(&text[..at]);
        text = &text[at + separator.len_utf8()..];
    }
    parts.push(text);
    parts
}

/// The text between matching quotes, escapes resolved.
fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut plain = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next()?),
            c if c == quote => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

fn pick(text: &str) -> Option<Pick> {
    if let Some(name) = quoted(text) {
        return Some(Pick::Field(name));
    }
    if !text.contains(':') {
        return text.parse().ok().map(Pick::Index);
    }
    let mut bounds = text.splitn(3, ':').map(|bound| match bound.trim() {
        "" => Some(None),
        bound => bound.parse::<i64>().ok().map(Some),
    });
    let start = bounds.next()??;
    let end = bounds.next()??;
    let step = bounds.next().unwrap_or(Some(None))?.unwrap_or(1);
    (step > 0).then_some(Pick::Slice { start, end, step })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"annotations": {"a.b/c": "dotted"}, "name": "n"},
            "spec": {"n": 3, "list": ["a", "b", "c"], "null": null, "ports": [
                {"name": "http", "port": 80}, {"name": "x]y", "port": 8080},
            ]},
            "status": {"conditions": [
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]},
        })
    }

    #[test]
    fn a_path_with_many_descents_ends() {
        let deep = (0..60).fold(json!(0), |inner, _| json!([inner]));
        let path = JsonPath::compile(&"..[*]".repeat(12)).unwrap();
        assert!(path.find(&deep).len() <= FOUND_MAX);
    }

    #[test]
    fn paths_lead_where_client_go_leads() {
        let cases: &[(&str, Value)] = &[
            (".metadata.name", json!(["n"])),
            ("$.metadata.name", json!(["n"])),
            (".spec.n", json!([3])),
            (".spec.missing.deeper", json!([])),
            (".spec.null", json!([null])),
            (r".metadata.annotations.a\.b/c", json!(["dotted"])),
            (".metadata.annotations['a.b/c']", json!(["dotted"])),
            (r#".metadata.annotations["a.b/c"]"#, json!(["dotted"])),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                json!(["True"]),
            ),
            (
                ".status.conditions[?(@.type == 'Ready')].status",
                json!(["True"]),
            ),
            (
                r#".status.conditions[?(@.type!="Ready")].status"#,
                json!(["False"]),
            ),
            (r#".status.conditions[?(@.type=="None")].status"#, json!([])),
            (".spec.ports[?(@.port>100)].name", json!(["x]y"])),
            (".spec.ports[?(@.port<=80)].name", json!(["http"])),
            (r#".spec.ports[?(@.name=="x]y")].port"#, json!([8080])),
            (r#".spec.ports[?(@.port=="80")].port"#, json!([])),
            (".spec.ports[?(@.name)].port", json!([80, 8080])),
            (".spec.ports[*].port", json!([80, 8080])),
            (".spec.list[0]", json!(["a"])),
            (".spec.list[-1]", json!(["c"])),
            (".spec.list[9]", json!([])),
            (".spec.list[-9]", json!([])),
            (".spec.list[0:2]", json!(["a", "b"])),
            (".spec.list[::2]", json!(["a", "c"])),
            (".spec.list[2,0]", json!(["c", "a"])),
            (".spec.list.*", json!(["a", "b", "c"])),
            ("..port", json!([80, 8080])),
            (".spec['n','list'][0]", json!(["a"])),
        ];
        for (path, want) in cases {
            let compiled = JsonPath::compile(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let object = object();
            let found: Vec<Value> = compiled.find(&object).into_iter().cloned().collect();
            assert_eq!(Value::from(found), *want, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        for bad in [
            "",
            "spec",
            ".a b",
            ".a[",
            ".a[?(@.x=='y']",
            ".a[b]",
            ".a[?(b)]",
            ".a..",
            ".a\\",
            ".a[1:2:0]",
            ".a[?(@.b==)]",
            ".a{b}",
            ".a[]",
        ] {
            assert!(JsonPath::compile(bad).is_err(), "{bad}");
        }
        let deep = format!(".a{}{}", "[?(@.b".repeat(9), ")]".repeat(9));
        assert!(JsonPath::compile(&deep).is_err());
        assert_eq!(JsonPath::compile(".a b").unwrap_err().at, 2);
    }

    #[test]
    fn null_is_no_first_value() {
        let path = JsonPath::compile(".spec.null").unwrap();
        assert_eq!(path.first(&object()), None);
    }
}
