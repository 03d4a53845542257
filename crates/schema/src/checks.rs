//! Value validations of a node, compiled.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use crate::cel::Rule;
use crate::format::Format;
use crate::limits;
use crate::node::Node;

/// What a value must satisfy beside its type. Only the validator reads it.
#[derive(Debug, Default)]
pub struct Checks {
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) length_min: Option<u64>,
    pub(crate) length_max: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<Format>,
    pub(crate) allowed: Option<Allowed>,
    pub(crate) items_min: Option<u64>,
    pub(crate) items_max: Option<u64>,
    pub(crate) properties_min: Option<u64>,
    pub(crate) properties_max: Option<u64>,
    pub(crate) required: Vec<String>,
    /// `additionalProperties: false`.
    pub(crate) closed: bool,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
    pub(crate) rules: Vec<Rule>,
    /// Whether this node or one below it has rules.
    pub(crate) has_rules: bool,
    /// Whether this node or one below it is a list of type set or map.
    pub(crate) has_unique_lists: bool,
    /// Whether this node or one below it is an embedded resource.
    pub(crate) has_resources: bool,
}

impl Checks {
    /// Whether there is nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && self.length_min.is_none()
            && self.length_max.is_none()
            && self.pattern.is_none()
            && self.format.is_none()
            && self.allowed.is_none()
            && self.items_min.is_none()
            && self.items_max.is_none()
            && self.properties_min.is_none()
            && self.properties_max.is_none()
            && self.required.is_empty()
            && !self.closed
            && !self.has_junctors()
            && !self.has_rules
            && !self.has_unique_lists
            && !self.has_resources
    }

    /// Whether there are `allOf`, `anyOf`, `oneOf` or `not`.
    pub(crate) fn has_junctors(&self) -> bool {
        !self.all_of.is_empty()
            || !self.any_of.is_empty()
            || !self.one_of.is_empty()
            || self.not.is_some()
    }
}

/// A bound of a number.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

/// An `enum`, with the text that names its values.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) values: Vec<Value>,
    pub(crate) detail: String,
}

impl Allowed {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        let shown: Vec<String> = values
            .iter()
            .map(|value| match value {
                // A string value is quoted once, anything else is its JSON, quoted.
                Value::String(_) => value.to_string(),
                value => Value::String(value.to_string()).to_string(),
            })
            .collect();
        Self {
            detail: format!("supported values: {}", shown.join(", ")),
            values,
        }
    }

    pub(crate) fn contains(&self, value: &Value) -> bool {
        self.values.iter().any(|allowed| same(allowed, value))
    }
}

/// Equality in which `1` and `1.0` are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || crate::number::compare(a, b) == Some(std::cmp::Ordering::Equal)
        }
        _ => a == b,
    }
}

/// A compiled `pattern`.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern of Go's RE2 dialect. Its classes (`\d`, `\w`, `\s`, `\b`) are ASCII,
    /// and `\pN` and `\z` mean what they mean in Rust.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(&ascii_classes(text))
            .size_limit(limits::PATTERN_SIZE_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.to_owned(),
            regex,
        })
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Rewrites the Perl classes, which are Unicode in `regex`, to the ASCII ones of RE2, and `\Q...\E`
/// quotes, which `regex` lacks.
fn ascii_classes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_class = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            match c {
                '[' if !in_class => {
                    in_class = true;
                    out.push('[');
                    // `[]a]` and `[^]a]` hold a bracket in both dialects.
                    if chars.peek() == Some(&'^') {
                        out.extend(chars.next());
                    }
                    if chars.peek() == Some(&']') {
                        chars.next();
                        out.push_str("\\]");
                    }
                    continue;
                }
                '[' if chars.peek() != Some(&':') => out.push('\\'),
                // `&&`, `--` and `~~` are set operations in `regex` and plain text in RE2.
                '&' | '~' if in_class => out.push('\\'),
                '-' if in_class && chars.peek() == Some(&'-') => {
                    chars.next();
                    out.push_str("-\\-");
                    continue;
                }
                ']' => in_class = false,
                _ => {}
            }
            out.push(c);
            if c == '[' && in_class && chars.peek() == Some(&':') {
                copy_posix_class(&mut chars, &mut out);
            }
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str(if in_class {
                "0-9A-Za-z_"
            } else {
                "[0-9A-Za-z_]"
            }),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(if in_class {
                r"\t\n\f\r "
            } else {
                r"[\t\n\f\r ]"
            }),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            Some('b') if !in_class => out.push_str("(?-u:\\b)"),
            Some('Q') => quote(&mut chars, &mut out),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Copies the rest of `[:alpha:]`.
fn copy_posix_class(chars: &mut Chars<'_>, out: &mut String) {
    for c in chars.by_ref() {
        out.push(c);
        if c == ']' {
            return;
        }
    }
}

/// Copies text up to `\E`, escaped.
fn quote(chars: &mut Chars<'_>, out: &mut String) {
    while let Some(c) = chars.next() {
        if c == '\\' && chars.peek() == Some(&'E') {
            chars.next();
            return;
        }
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_have_the_dialect_of_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w.]+$", "a_b.c", true),
            (r"^[\w.]+$", "é", false),
            (r"^\S+$", "a b", false),
            (r"^a\z", "a", true),
            (r"^[^]]$", "a", true),
            (r"^[]a]$", "]", true),
            (r"^[[]$", "[", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[+--]+$", "+,-", true),
            (r"^[[:alpha:]-]+$", "a-b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^(?:[a-z]([-a-z0-9]*[a-z0-9])?)$", "a-1", true),
            (r"\bx\b", "a x b", true),
        ];
        for (pattern, value, want) in cases {
            let compiled = Pattern::new(pattern).expect(pattern);
            assert_eq!(compiled.matches(value), want, "{pattern} on {value}");
        }
        assert!(Pattern::new("(?=a)").is_err(), "RE2 has no look-ahead");
        assert!(
            Pattern::new("((a{1000}){1000}){1000}").is_err(),
            "too large"
        );
    }

    #[test]
    fn enums_name_their_values() {
        let allowed = Allowed::new(vec![json!("a"), json!(1)]);
        assert_eq!(allowed.detail, r#"supported values: "a", "1""#);
        assert!(allowed.contains(&json!(1.0)));
        assert!(!allowed.contains(&json!("1")));
    }
}
