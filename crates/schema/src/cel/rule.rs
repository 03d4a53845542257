//! One `x-kubernetes-validations` rule, compiled.

use std::fmt;
use std::sync::Arc;
use std::thread;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators;
use kube_cel::cel::parser::Parser;
use serde::Deserialize;
use serde_json::Value;

use super::cost::Shape;
use super::visit;
use crate::error::{FieldError, FieldErrorKind};
use crate::limits;
use crate::path::Path;

/// A parsed expression.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) expr: Arc<IdedExpr>,
    pub(super) shape: Shape,
}

/// A compiled rule.
#[derive(Clone)]
pub(crate) struct Rule {
    pub(super) program: Program,
    pub(super) message_program: Option<Program>,
    /// The expression, trimmed.
    pub(crate) text: String,
    /// The message, trimmed.
    pub(crate) message: Option<String>,
    pub(crate) reason: FieldErrorKind,
    pub(crate) field_path: Option<String>,
    pub(crate) uses_old_self: bool,
    pub(crate) optional_old_self: Option<bool>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    rule: String,
    message: Option<String>,
    message_expression: Option<String>,
    reason: Option<String>,
    field_path: Option<String>,
    optional_old_self: Option<bool>,
}

impl Rule {
    /// Compiles a rule; reports what is wrong with it.
    pub(crate) fn compile(
        value: &Value,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let before = errors.len();
        let mut fail = |kind, name: &str, value: Value, detail: &str| {
            let error = FieldError::new(kind, path.field(name).text(), detail);
            errors.push(error.with_value(value));
        };
        let written = match Written::deserialize(value) {
            Ok(written) => written,
            Err(error) => {
                let error =
                    FieldError::new(FieldErrorKind::TypeInvalid, path.text(), error.to_string());
                errors.push(error.with_value(value.clone()));
                return None;
            }
        };
        check_texts(&written, &mut fail);
        let reason = reason(written.reason.as_deref(), &mut fail);
        let mut program = |name: &str, text: &str| match parse(text) {
            Ok(program) => Some(program),
            Err(detail) => {
                fail(FieldErrorKind::Invalid, name, value.clone(), &detail);
                None
            }
        };
        let text = written.rule.trim();
        let compiled = if text.is_empty() {
            None
        } else {
            program("rule", text)
        };
        let message_program = written
            .message_expression
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .and_then(|text| program("messageExpression", text));
        let compiled = compiled.filter(|_| errors.len() == before)?;
        Some(Self {
            uses_old_self: compiled.expr.references().has_variable("oldSelf"),
            program: compiled,
            message_program,
            text: text.to_owned(),
            message: written
                .message
                .map(|m| m.trim().to_owned())
                .filter(|m| !m.is_empty()),
            reason,
            field_path: written
                .field_path
                .map(|p| p.trim().to_owned())
                .filter(|p| !p.is_empty()),
            optional_old_self: written.optional_old_self,
        })
    }

    /// What names the rule in messages.
    pub(crate) fn shown(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }
}

/// The kind of error that a broken rule is.
fn reason(
    name: Option<&str>,
    fail: &mut impl FnMut(FieldErrorKind, &str, Value, &str),
) -> FieldErrorKind {
    match name {
        None | Some("FieldValueInvalid") => FieldErrorKind::Invalid,
        Some("FieldValueForbidden") => FieldErrorKind::Forbidden,
        Some("FieldValueRequired") => FieldErrorKind::Required,
        Some("FieldValueDuplicate") => FieldErrorKind::Duplicate,
        Some(other) => {
            let supported = r#"supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#;
            fail(
                FieldErrorKind::NotSupported,
                "reason",
                Value::from(other),
                supported,
            );
            FieldErrorKind::Invalid
        }
    }
}

fn check_texts(written: &Written, fail: &mut impl FnMut(FieldErrorKind, &str, Value, &str)) {
    use FieldErrorKind::{Invalid, Required};
    let (rule, message) = (
        written.rule.trim(),
        written.message.as_deref().unwrap_or_default(),
    );
    let trimmed = message.trim();
    if rule.is_empty() {
        fail(Required, "rule", Value::from(""), "rule is not specified");
    } else if !message.is_empty() && trimmed.is_empty() {
        fail(
            Invalid,
            "message",
            Value::from(message),
            "must be non-empty if specified",
        );
    } else if trimmed.contains('\n') {
        fail(
            Invalid,
            "message",
            Value::from(message),
            "must not contain line breaks",
        );
    } else if rule.contains('\n') && trimmed.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        fail(Required, "message", Value::from(""), detail);
    }
    let blank = |text: &Option<String>| {
        text.as_deref()
            .is_some_and(|text| !text.is_empty() && text.trim().is_empty())
    };
    if blank(&written.message_expression) {
        let detail = "messageExpression must be non-empty if specified";
        fail(Required, "messageExpression", Value::from(""), detail);
    }
    let field_path = written.field_path.as_deref().unwrap_or_default();
    if blank(&written.field_path) {
        fail(
            Invalid,
            "fieldPath",
            Value::from(field_path),
            "must be non-empty if specified",
        );
    }
    if field_path.contains('\n') {
        fail(
            Invalid,
            "fieldPath",
            Value::from(field_path),
            "must not contain line breaks",
        );
    }
}

/// Parses an expression within the limits that keep the parser's stack shallow.
fn parse(text: &str) -> Result<Program, String> {
    if text.len() > limits::RULE_LEN_MAX {
        return Err(format!(
            "must not be longer than {} bytes",
            limits::RULE_LEN_MAX
        ));
    }
    let mut expr = parse_text(text).map_err(|error| format!("compilation failed: {error}"))?;
    // `a.?b` of `cel` fails where `b` is absent; `a[?"b"]` is none, as both should be.
    visit::calls(&mut expr, &mut |call| {
        if call.func_name == operators::OPT_SELECT {
            call.func_name = operators::OPT_INDEX.to_owned();
        }
    });
    Ok(Program {
        shape: Shape::of(&expr),
        expr: Arc::new(expr),
    })
}

/// Parses on a stack that holds what the text can need.
///
/// A chain of operators (`a + a + ...`, `a.a.a...`) makes a tree as deep as it is long. A short text
/// fits any stack.
fn parse_text(text: &str) -> Result<IdedExpr, String> {
    let parse = || {
        let parser = Parser::new().enable_optional_syntax(true);
        let expr = parser.parse(text).map_err(|error| error.to_string())?;
        // A deep tree must not leave this stack, not even to be dropped.
        if visit::depth(&expr) > limits::RULE_TREE_DEPTH_MAX {
            return Err(format!(
                "nested deeper than {}",
                limits::RULE_TREE_DEPTH_MAX
            ));
        }
        Ok(expr)
    };
    let operators = text
        .chars()
        .filter(|c| !c.is_ascii_alphanumeric() && *c != ' ')
        .count();
    if operators <= limits::RULE_OPERATORS_INLINE {
        return parse();
    }
    if operators > limits::RULE_OPERATORS_MAX {
        let max = limits::RULE_OPERATORS_MAX;
        return Err(format!("more than {max} operators and brackets"));
    }
    thread::scope(|scope| {
        let parser = thread::Builder::new()
            .stack_size(operators * limits::RULE_STACK_PER_OPERATOR)
            .spawn_scoped(scope, parse)
            .map_err(|error| error.to_string())?;
        parser
            .join()
            .unwrap_or_else(|_| Err("internal error".to_owned()))
    })
}
