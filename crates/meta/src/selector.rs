//! Kubernetes label and field selectors, in their textual form.
//!
//! Grammar and matching follow apimachinery's `labels.Parse` and `fields.ParseSelector`.

use std::collections::BTreeMap;
use std::fmt;

use crate::limits::{SELECTOR_LEN_MAX, SELECTOR_TERMS_MAX};
use crate::names::{is_label_value, is_qualified_name};

/// A parsed label selector; all requirements must hold. The default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// How the label must relate to the values.
    pub operator: Operator,
    /// Values; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

/// Operator of a label requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is one of the values.
    In,
    /// The label is absent or none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer greater than the value.
    GreaterThan,
    /// The label is an integer less than the value.
    LessThan,
}

/// A selector text that cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unable to parse selector {text:?}: {reason}")]
pub struct SelectorError {
    text: String,
    reason: String,
}

impl LabelSelector {
    /// Parses the textual form, such as `a=b,c in (d,e),!f`.
    ///
    /// # Errors
    /// The text is too long, has too many requirements or breaks the grammar.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let fail = |reason: &str| SelectorError {
            text: text.chars().take(256).collect(),
            reason: reason.into(),
        };
        if text.len() > SELECTOR_LEN_MAX {
            return Err(fail("too long"));
        }
        let mut requirements = Vec::new();
        for term in split_outside_parentheses(text).map_err(&fail)? {
            if requirements.len() == SELECTOR_TERMS_MAX {
                return Err(fail("too many requirements"));
            }
            requirements.push(Requirement::parse(term.trim()).map_err(|e| fail(&e))?);
        }
        Ok(Self { requirements })
    }

    /// A selector that wants each of the given labels.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let requirements = labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key: key.into(),
                operator: Operator::In,
                values: vec![value.into()],
            })
            .collect();
        Self { requirements }
    }

    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether labels, looked up by key, satisfy every requirement.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.matches(label(&r.key)))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            let sep = if i == 0 { "" } else { "," };
            let values = r.values.join(",");
            match r.operator {
                Operator::In if r.values.len() == 1 => write!(f, "{sep}{}={values}", r.key)?,
                Operator::In => write!(f, "{sep}{} in ({values})", r.key)?,
                Operator::NotIn if r.values.len() == 1 => write!(f, "{sep}{}!={values}", r.key)?,
                Operator::NotIn => write!(f, "{sep}{} notin ({values})", r.key)?,
                Operator::Exists => write!(f, "{sep}{}", r.key)?,
                Operator::DoesNotExist => write!(f, "{sep}!{}", r.key)?,
                Operator::GreaterThan => write!(f, "{sep}{}>{values}", r.key)?,
                Operator::LessThan => write!(f, "{sep}{}<{values}", r.key)?,
            }
        }
        Ok(())
    }
}

impl Requirement {
    fn parse(term: &str) -> Result<Self, String> {
        let (key, operator, values) = Self::split(term)?;
        if !is_qualified_name(&key) {
            return Err(format!("{key:?} is not a label key"));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            let value = values.first().map(String::as_str).unwrap_or_default();
            if value.parse::<i64>().is_err() {
                return Err(format!("{value:?} is not an integer"));
            }
        } else if let Some(bad) = values.iter().find(|v| !is_label_value(v)) {
            return Err(format!("{bad:?} is not a label value"));
        }
        Ok(Self {
            key,
            operator,
            values,
        })
    }

    fn split(term: &str) -> Result<(String, Operator, Vec<String>), String> {
        if term.is_empty() {
            return Err("a requirement is empty".into());
        }
        if let Some(key) = term.strip_prefix('!') {
            return Ok((key.trim().into(), Operator::DoesNotExist, Vec::new()));
        }
        if let Some(open) = term.find('(') {
            let list = term[open + 1..].strip_suffix(')').ok_or("')' is missing")?;
            let mut head = term[..open].split_whitespace();
            let operator = match (head.next(), head.next(), head.next()) {
                (Some(key), Some("in"), None) => (key, Operator::In),
                (Some(key), Some("notin"), None) => (key, Operator::NotIn),
                _ => return Err("'in' or 'notin' must stand before a list".into()),
            };
            let values = list.split(',').map(|v| v.trim().to_owned()).collect();
            return Ok((operator.0.into(), operator.1, values));
        }
        for (token, operator) in [
            ("!=", Operator::NotIn),
            ("==", Operator::In),
            ("=", Operator::In),
            (">", Operator::GreaterThan),
            ("<", Operator::LessThan),
        ] {
            if let Some((key, value)) = term.split_once(token) {
                return Ok((key.trim().into(), operator, vec![value.trim().into()]));
            }
        }
        Ok((term.into(), Operator::Exists, Vec::new()))
    }

    /// Whether one label value (or its absence) satisfies the requirement.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|x| x == v);
        let number = |v: &str| v.parse::<i64>().ok();
        let bound = self.values.first().and_then(|v| number(v));
        match self.operator {
            Operator::In => label.is_some_and(listed),
            Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label
                .and_then(number)
                .zip(bound)
                .is_some_and(|(a, b)| a > b),
            Operator::LessThan => label
                .and_then(number)
                .zip(bound)
                .is_some_and(|(a, b)| a < b),
        }
    }
}

fn split_outside_parentheses(text: &str) -> Result<Vec<&str>, &'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0u32, 0);
    if text.trim().is_empty() {
        return Ok(parts);
    }
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("unbalanced ')'")?,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("unbalanced '('");
    }
    parts.push(&text[start..]);
    Ok(parts)
}

/// A parsed field selector: each named field must (or must not) have a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Field, such as `metadata.name`.
    pub field: String,
    /// Value compared with.
    pub value: String,
    /// Whether the field must equal (or differ from) the value.
    pub equal: bool,
}

impl FieldSelector {
    /// Parses the textual form, such as `metadata.name=a,type!=b`.
    ///
    /// # Errors
    /// The text is too long, has too many terms or a term has no operator.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let fail = |reason: &str| SelectorError {
            text: text.chars().take(256).collect(),
            reason: reason.into(),
        };
        if text.len() > SELECTOR_LEN_MAX {
            return Err(fail("too long"));
        }
        let mut terms = Vec::new();
        for term in text.split(',').filter(|t| !t.is_empty()) {
            if terms.len() == SELECTOR_TERMS_MAX {
                return Err(fail("too many terms"));
            }
            let (field, value, equal) = if let Some((f, v)) = term.split_once("!=") {
                (f, v, false)
            } else if let Some((f, v)) = term.split_once("==") {
                (f, v, true)
            } else if let Some((f, v)) = term.split_once('=') {
                (f, v, true)
            } else {
                return Err(fail("a term needs '=', '==' or '!='"));
            };
            terms.push(FieldTerm {
                field: field.trim().into(),
                value: value.trim().into(),
                equal,
            });
        }
        Ok(Self { terms })
    }

    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value a field must equal, if the selector pins it.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }

    /// Whether field values, looked up by name (absent reads as empty), satisfy every term.
    pub fn matches(&self, field: impl Fn(&str) -> String) -> bool {
        self.terms
            .iter()
            .all(|t| (field(&t.field) == t.value) == t.equal)
    }
}

/// Whether `labels` contains every entry of `wanted`.
pub fn contains_all(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(k, v)| labels.get(k) == Some(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        LabelSelector::parse(selector)
            .unwrap()
            .matches(|k| labels.get(k).copied())
    }

    #[test]
    fn every_operator_matches_as_kubernetes_does() {
        let labels = [("env", "prod"), ("n", "5")];
        for yes in [
            "",
            "env=prod",
            "env==prod",
            "env!=dev",
            "other!=x",
            "env in (dev, prod)",
            "env notin (dev)",
            "other notin (x)",
            "env",
            "!other",
            "n>4",
            "n<6",
            "env=prod,n>4",
        ] {
            assert!(matches(yes, &labels), "{yes}");
        }
        for no in [
            "env=dev",
            "env!=prod",
            "env notin (prod)",
            "other",
            "!env",
            "n>5",
            "env>1",
        ] {
            assert!(!matches(no, &labels), "{no}");
        }
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for bad in [
            ",", "a=b,", "a in b", "a in (b", "a)b", "=x", "a b", "n>x", "a=-", "/a=b",
        ] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
        assert!(LabelSelector::parse(&"a,".repeat(10_000)).is_err());
        assert!(FieldSelector::parse("metadata.name").is_err());
    }

    #[test]
    fn display_round_trips() {
        for text in [
            "a=b",
            "a!=b",
            "a in (b,c)",
            "a notin (b,c)",
            "a",
            "!a",
            "a>1",
            "a<2",
            "a=b,c",
        ] {
            let parsed = LabelSelector::parse(text).unwrap();
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn field_selectors_match() {
        let s = FieldSelector::parse("metadata.name=a,metadata.namespace!=b").unwrap();
        assert_eq!(s.exact("metadata.name"), Some("a"));
        assert!(s.matches(|f| if f == "metadata.name" {
            "a".into()
        } else {
            "c".into()
        }));
        assert!(!s.matches(|_| "b".into()));
    }
}
