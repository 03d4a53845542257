//! SECA label selectors (SECA section 1.6), such as `env=prod,tier!=*gold,cpus>=4`.
//!
//! Terms are joined by commas and must all hold. Keys and values may hold `*`, which stands for
//! any text. A term is `key=value` (or `==`), `key!=value`, `key` with one of `<`, `>`, `<=`, `>=`
//! and a number, or one of Kubernetes' set-based terms: `key in (a, b)`, `key notin (a, b)`, `key`
//! and `!key`.
//!
//! A positive term holds if any label satisfies both its sides; `!=`, `notin` and `!key` hold if no
//! label does, so also where the label is missing (as in Kubernetes). Numeric terms only look at labels whose
//! value is a number. Case matters.

use std::fmt;

use crate::limits::{SELECTOR_LEN_MAX, SELECTOR_TERMS_MAX};

/// A parsed selector. The default selects everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    terms: Vec<Term>,
}

/// One term of a selector.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Key, possibly with `*`.
    pub key: String,
    /// What the label's value must be.
    pub test: Test,
}

/// What the value of a label must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Matches the text, possibly with `*`.
    Equal(String),
    /// Does not match it, or the label is missing.
    NotEqual(String),
    /// Is a number that compares so.
    Number(Comparison, f64),
    /// Matches one of the texts.
    In(Vec<String>),
    /// Matches none of them, or the label is missing.
    NotIn(Vec<String>),
    /// The label is there.
    Exists,
    /// The label is missing.
    Missing,
}

/// How numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is too long.
    #[error("the selector is longer than {SELECTOR_LEN_MAX} bytes")]
    TooLong,
    /// It has too many terms.
    #[error("the selector has more than {SELECTOR_TERMS_MAX} terms")]
    TooManyTerms,
    /// A term breaks the grammar.
    #[error("the selector term {term:?} {reason}")]
    Term {
        /// The term.
        term: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Selector {
    /// Parses the textual form. An empty text selects everything.
    ///
    /// # Errors
    /// See [`SelectorError`].
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > SELECTOR_LEN_MAX {
            return Err(SelectorError::TooLong);
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut terms = Vec::new();
        for term in split(text) {
            if terms.len() == SELECTOR_TERMS_MAX {
                return Err(SelectorError::TooManyTerms);
            }
            let parsed = Term::parse(term.trim()).map_err(|reason| SelectorError::Term {
                term: term.trim().chars().take(256).collect(),
                reason,
            })?;
            terms.push(parsed);
        }
        Ok(Self { terms })
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a resource with these labels is selected.
    pub fn matches<'a>(&self, labels: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> bool {
        self.terms.iter().all(|t| t.matches(labels.clone()))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            let not = if term.test == Test::Missing { "!" } else { "" };
            write!(f, "{separator}{not}{}", term.key)?;
            match &term.test {
                Test::Equal(value) => write!(f, "={value}")?,
                Test::NotEqual(value) => write!(f, "!={value}")?,
                Test::Number(comparison, number) => write!(f, "{comparison}{number}")?,
                Test::In(values) => write!(f, " in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, " notin ({})", values.join(","))?,
                Test::Exists | Test::Missing => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl Term {
    fn parse(term: &str) -> Result<Self, &'static str> {
        if term.is_empty() {
            return Err("is empty");
        }
        if let Some(set) = Self::parse_set(term) {
            return set;
        }
        let Some(at) = term.find(['=', '!', '<', '>']) else {
            return Self::new(term, Test::Exists);
        };
        if let Some(key) = term.strip_prefix('!') {
            return Self::new(key, Test::Missing);
        }
        let (key, rest) = (&term[..at], &term[at..]);
        let comparisons = [
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ];
        let test = if let Some(value) = rest.strip_prefix("!=") {
            Test::NotEqual(pattern(value)?)
        } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
            Test::Equal(pattern(value)?)
        } else if let Some((token, comparison)) =
            comparisons.into_iter().find(|(t, _)| rest.starts_with(t))
        {
            let number = decimal(rest[token.len()..].trim())
                .ok_or("compares with something that is not a number")?;
            Test::Number(comparison, number)
        } else {
            return Err("has none of =, !=, <, >, <= and >=");
        };
        Self::new(key, test)
    }

    fn new(key: &str, test: Test) -> Result<Self, &'static str> {
        let key = key.trim();
        if key.is_empty() {
            return Err("has no key");
        }
        if !key.chars().all(is_key_char) {
            return Err("has a key with other characters than letters, digits and _./-:*");
        }
        Ok(Self {
            key: key.into(),
            test,
        })
    }

    /// A term with `in` or `notin`, if it is one.
    fn parse_set(term: &str) -> Option<Result<Self, &'static str>> {
        let (key, rest) = term.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let word = rest.find(|c: char| c == '(' || c.is_whitespace())?;
        let (operator, values) = rest.split_at(word);
        if !matches!(operator, "in" | "notin") {
            return None;
        }
        let inner = values
            .trim()
            .strip_prefix('(')
            .and_then(|v| v.strip_suffix(')'));
        let Some(inner) = inner else {
            return Some(Err("has no values in parentheses"));
        };
        let values: Result<Vec<_>, _> = inner.split(',').map(set_value).collect();
        Some(values.and_then(|values| {
            let test = match operator {
                "in" => Test::In(values),
                _ => Test::NotIn(values),
            };
            Self::new(key, test)
        }))
    }

    fn matches<'a>(&self, mut labels: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        match &self.test {
            Test::Equal(value) => labels.any(|(k, v)| glob(&self.key, k) && glob(value, v)),
            Test::NotEqual(value) => !labels.any(|(k, v)| glob(&self.key, k) && glob(value, v)),
            Test::Number(comparison, number) => labels.any(|(k, v)| {
                glob(&self.key, k) && decimal(v).is_some_and(|v| comparison.holds(v, *number))
            }),
            Test::In(values) => {
                labels.any(|(k, v)| glob(&self.key, k) && values.iter().any(|p| glob(p, v)))
            }
            Test::NotIn(values) => {
                !labels.any(|(k, v)| glob(&self.key, k) && values.iter().any(|p| glob(p, v)))
            }
            Test::Exists => labels.any(|(k, _)| glob(&self.key, k)),
            Test::Missing => !labels.any(|(k, _)| glob(&self.key, k)),
        }
    }
}

/// Splits at the commas that are in no parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    })
}

/// A value of a set. Those are between commas and parentheses, so they hold none.
fn set_value(value: &str) -> Result<String, &'static str> {
    if value.contains(['(', ')']) {
        return Err("has parentheses among its values");
    }
    pattern(value)
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | ':' | '*')
}

/// The value of an equality term. Label values are free text, so all is allowed that cannot be
/// mistaken for an operator or hide from view.
fn pattern(value: &str) -> Result<String, &'static str> {
    let value = value.trim();
    if value.is_empty() {
        return Err("has no value");
    }
    if value
        .chars()
        .any(|c| c.is_control() || matches!(c, '=' | '!' | '<' | '>'))
    {
        return Err("has a value with =, !, <, > or a control character");
    }
    Ok(value.into())
}

/// A decimal number. `f64` also parses `inf` and `NaN`, which are no numbers here.
fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse::<f64>().ok().filter(|n| plain && n.is_finite())
}

/// Whether `text` matches `pattern`, in which `*` stands for any text.
///
/// Goes back to the last star only, so it takes `pattern * text` steps at most.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            star = Some((star_p, star_t + 1));
            p = star_p + 1;
            t = star_t + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        Selector::parse(selector)
            .unwrap()
            .matches(labels.iter().copied())
    }

    #[test]
    fn terms_match_as_the_contract_says() {
        let labels = [
            ("env", "prod"),
            ("Tier", "D2XS"),
            ("cpus", "4"),
            ("acme:team", "a/b"),
            ("size", "1.5"),
        ];
        for yes in [
            "",
            " ",
            "env=prod",
            "env==prod",
            " env = prod ",
            "Tier=D2XS",
            "env!=dev",
            "missing!=x",
            "*env*=*prod*",
            "e*=p*d",
            "*=prod",
            "env=*",
            "cpus>3",
            "cpus>=4",
            "cpus<5",
            "cpus<=4.0",
            "size>1",
            "*>3",
            "acme:team=a/b",
            "env=prod,cpus>=4",
            "env",
            "!missing",
            "e*",
            "env in (dev, prod)",
            "env in (prod),cpus in (3,4,5)",
            "env in(p*)",
            "* in (D2XS)",
            "env notin (dev,test)",
            "missing notin (a)",
            "env in (staging, prod) , !gone,Tier",
        ] {
            assert!(matches(yes, &labels), "{yes}");
        }
        for no in [
            "env=Prod",
            "Env=prod",
            "tier=D2XS",
            "env!=prod",
            "*!=prod",
            "env=pro",
            "cpus>4",
            "cpus<4",
            "env>0",
            "missing=x",
            "missing=*",
            "missing>0",
            "env=prod,cpus>4",
            "missing",
            "!env",
            "!e*",
            "env in (dev)",
            "missing in (*)",
            "env notin (dev,prod)",
            "env notin (p*)",
            "env in (Prod)",
        ] {
            assert!(!matches(no, &labels), "{no}");
        }
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for bad in [
            "env=",
            "=x",
            ">=5",
            "a>",
            "a>x",
            "a>inf",
            "a<nan",
            "a=b,",
            ",a=b",
            "a=b,,c=d",
            "a b=c",
            "a=b=c",
            "a!b",
            "a=>1",
            "a<>1",
            "é=1",
            "a=\u{7}x",
            "!",
            "!!a",
            "! a b",
            "a b",
            "a in",
            "a in b",
            "a in ()",
            "a in (b",
            "a in b)",
            "a in (b,)",
            "a in ((b))",
            "in (a)",
            "a in (b) c",
            "a notin (b),",
            "a not in (b)",
            "a in (b=c)",
            "(a)",
            "a in (b)(c)",
        ] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
        let long = "a=b,".repeat(SELECTOR_LEN_MAX);
        assert_eq!(Selector::parse(&long), Err(SelectorError::TooLong));
        let many = ["a=b"; SELECTOR_TERMS_MAX + 1].join(",");
        assert_eq!(Selector::parse(&many), Err(SelectorError::TooManyTerms));
    }

    /// The textbook definition, exponential and obviously right.
    fn slow_glob(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some((b'*', rest)), _) => {
                slow_glob(rest, text) || (!text.is_empty() && slow_glob(pattern, &text[1..]))
            }
            (Some((c, rest)), Some((d, tail))) => c == d && slow_glob(rest, tail),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn globs_match_their_definition(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(
                glob(&pattern, &text),
                slow_glob(pattern.as_bytes(), text.as_bytes())
            );
        }

        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,64}", key in ".{0,8}", value in ".{0,8}") {
            if let Ok(selector) = Selector::parse(&text) {
                let _ = selector.matches([(key.as_str(), value.as_str())].into_iter());
            }
        }

        #[test]
        fn what_is_printed_parses_to_the_same(text in "[a-z*]{1,4}(=|!=|>|<|>=|<=)[0-9*.]{1,4}(,[a-z]{1,3}=[a-z*]{1,3}){0,3}") {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
            }
        }

        #[test]
        fn printed_sets_parse_to_the_same(text in "!?[a-z*]{1,4}( (in|notin) ?\\([a-z*]{1,3}( ?, ?[a-z]{1,3}){0,2}\\))?(,[a-z]{1,3}){0,2}") {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
            }
        }

        #[test]
        fn a_set_is_its_members_and_notin_the_opposite(
            values in proptest::collection::vec("[x-z*]{1,2}", 1..4),
            labels in proptest::collection::vec(("[a-c]{1,2}", "[x-z]{1,2}"), 0..4),
        ) {
            let pairs: Vec<(&str, &str)> =
                labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let list = values.join(",");
            let one = values.iter().any(|v| matches(&format!("a={v}"), &pairs));
            prop_assert_eq!(matches(&format!("a in ({list})"), &pairs), one);
            prop_assert_eq!(matches(&format!("a notin ({list})"), &pairs), !one);
        }

        #[test]
        fn not_equal_is_the_opposite_of_equal(key in "[a-c*]{1,3}", value in "[x-z*]{1,3}",
            labels in proptest::collection::vec(("[a-c]{1,2}", "[x-z]{1,2}"), 0..4)) {
            let pairs: Vec<(&str, &str)> =
                labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            prop_assert_ne!(
                matches(&format!("{key}={value}"), &pairs),
                matches(&format!("{key}!={value}"), &pairs)
            );
        }
    }
}
