//! Evaluation of rules (apiextensions `pkg/apiserver/schema/cel/validation.go`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::cel;
use kube_cel::cel::Context;
use kube_cel::cel::objects::OptionalValue;
use serde_json::Value;

use super::cost::Measure;
use super::functions;
use super::rule::{Program, Rule};
use super::value::to_cel;
use crate::checks::Checks;
use crate::error::{FieldError, FieldErrorKind};
use crate::limits;
use crate::listtype::{self, OldItems};
use crate::node::{Node, NodeType};
use crate::path::Path;
use crate::validate::has_type;

/// Evaluates all rules on a value and what is below it.
///
/// Rules do not run on values whose types or sizes are wrong: the errors found so far say so.
pub(crate) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !has_rules(node) {
        return;
    }
    use FieldErrorKind::{Required, TooLong, TooMany, TypeInvalid};
    let blocks =
        |error: &FieldError| matches!(error.kind, Required | TooLong | TooMany | TypeInvalid);
    if errors.iter().any(blocks) {
        let detail = "some validation rules were not checked because the object was invalid; \
                      correct the existing errors to complete validation";
        let error = FieldError::new(FieldErrorKind::Invalid, "<nil>", detail);
        errors.push(error.with_value(Value::Null));
        return;
    }
    let correlation = Correlation::Nothing.below(node, value, old);
    run_rules(node, value, old, correlation, path, errors);
}

/// Evaluates all rules on a default, which must satisfy them whether it is new or was there before.
pub(crate) fn check_default(node: &Node, default: &Value, errors: &mut Vec<FieldError>) {
    if !has_rules(node) {
        return;
    }
    let unrelated = Correlation::Never;
    run_rules(node, default, Some(default), unrelated, &Path::Root, errors);
    if errors.is_empty() {
        run_rules(node, default, None, unrelated, &Path::Root, errors);
    }
}

fn run_rules(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    correlation: Correlation<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    functions::with_context(|context| {
        let mut evaluator = Evaluator {
            context,
            errors,
            budget: limits::SCHEMA_COST_MAX,
        };
        evaluator.node(node, value, old, correlation, path);
    });
}

fn has_rules(node: &Node) -> bool {
    node.checks.as_ref().is_some_and(|checks| checks.has_rules)
}

/// What ratcheting compares.
#[derive(Clone, Copy)]
enum Correlation<'a> {
    /// Nothing, at no depth.
    Never,
    /// Nothing around has an old value.
    Nothing,
    /// The nearest value that has an old one, and the old one.
    Pair(&'a Node, &'a Value, &'a Value),
}

impl<'a> Correlation<'a> {
    /// That of a value below.
    fn below(self, node: &'a Node, value: &'a Value, old: Option<&'a Value>) -> Self {
        match (self, old) {
            (Self::Never, _) => Self::Never,
            (_, Some(old)) => Self::Pair(node, value, old),
            (around, None) => around,
        }
    }

    fn is_unchanged(self) -> bool {
        match self {
            Self::Never | Self::Nothing => false,
            Self::Pair(node, value, old) => listtype::is_unchanged(node, value, old),
        }
    }
}

struct Evaluator<'a> {
    context: &'a Context<'static>,
    errors: &'a mut Vec<FieldError>,
    budget: u64,
}

impl Evaluator<'_> {
    fn node(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_>,
        path: &Path<'_>,
    ) {
        let Some(checks) = node.checks.as_deref().filter(|checks| checks.has_rules) else {
            return;
        };
        // Null is for the rules around it to judge.
        if value.is_null() {
            return;
        }
        if !checks.rules.is_empty() {
            self.rules(node, checks, value, old, correlation, path);
        }
        match value {
            Value::Object(map) => {
                let old_map = old.and_then(Value::as_object);
                for (key, value) in map {
                    let Some(child) = node.child(key).filter(|child| has_rules(child)) else {
                        continue;
                    };
                    let old = old_map.and_then(|old| old.get(key));
                    let is_type =
                        matches!(path, Path::Root) && matches!(key.as_str(), "apiVersion" | "kind");
                    let below = if is_type {
                        // Both versions are converted to one, so a change does not show.
                        Correlation::Nothing
                    } else {
                        correlation.below(child, value, old)
                    };
                    if node.properties.contains_key(key) {
                        self.node(child, value, old, below, &path.field(key));
                    } else {
                        self.node(child, value, old, below, &path.key(key));
                    }
                }
            }
            Value::Array(items) => {
                let Some(item) = node.items.as_deref().filter(|item| has_rules(item)) else {
                    return;
                };
                let old_items = OldItems::new(node, old);
                for (i, value) in items.iter().enumerate() {
                    let old = old_items.find(value);
                    self.node(
                        item,
                        value,
                        old,
                        correlation.below(item, value, old),
                        &path.index(i),
                    );
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn rules(
        &mut self,
        node: &Node,
        checks: &Checks,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_>,
        path: &Path<'_>,
    ) {
        // Ratcheting lets values of another type stay, but rules cannot judge them.
        if let Some(kind) = node.kind.filter(|kind| !has_type(*kind, value)) {
            let kind = kind.name();
            for rule in &checks.rules {
                let shown = rule.shown();
                let detail = format!("invalid data, expected {kind} evaluating rule: {shown}");
                self.fail(node, path, detail);
            }
            return;
        }
        let mut measure = Measure::default();
        let new_self = to_cel(value, Some(node), &mut measure);
        let mut context = self.context.new_inner_scope();
        context.add_variable_from_value("self", new_self);
        let old_self = old
            .filter(|old| !old.is_null() && checks.rules.iter().any(|rule| rule.uses_old_self))
            .map(|old| to_cel(old, Some(node), &mut measure));
        for rule in &checks.rules {
            let optional = rule.optional_old_self == Some(true);
            if rule.uses_old_self && old_self.is_none() && !optional {
                continue;
            }
            let mut scope = context.new_inner_scope();
            if rule.uses_old_self {
                let bound = match (&old_self, optional) {
                    (Some(old), false) => old.clone(),
                    (Some(old), true) => optional_value(OptionalValue::of(old.clone())),
                    (None, _) => optional_value(OptionalValue::none()),
                };
                scope.add_variable_from_value("oldSelf", bound);
            }
            if !self.rule(rule, node, value, &scope, measure, correlation, path) {
                return;
            }
        }
    }

    /// Evaluates one rule; false if no further one may run.
    #[expect(
        clippy::too_many_arguments,
        reason = "all of them differ from rule to rule"
    )]
    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        value: &Value,
        scope: &Context<'_>,
        measure: Measure,
        correlation: Correlation<'_>,
        path: &Path<'_>,
    ) -> bool {
        let Some(cost) = rule.program.shape.cost(measure) else {
            self.fail(node, path, format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules \
                 will be run due to call cost exceeds limit for rule: {}",
                rule.shown()
            ));
            return false;
        };
        let Some(left) = self.budget.checked_sub(cost) else {
            let detail = "validation failed due to running out of cost budget, no further \
                          validation rules will be run";
            self.fail(node, path, detail.to_owned());
            return false;
        };
        self.budget = left;
        match run(&rule.program, scope) {
            Ok(cel::Value::Bool(true)) => {}
            Ok(cel::Value::Bool(false)) => {
                let counts = rule.uses_old_self || !correlation.is_unchanged();
                if counts && self.errors.len() < limits::ERRORS_MAX {
                    let detail = message(rule, scope, measure);
                    self.errors
                        .push(rule_error(rule, node, value, detail, path));
                }
            }
            Ok(_) => {
                self.fail(
                    node,
                    path,
                    format!("rule must evaluate to a bool: {}", rule.shown()),
                );
            }
            Err(error) => {
                self.fail(
                    node,
                    path,
                    format!("{error} evaluating rule: {}", rule.shown()),
                );
            }
        }
        true
    }

    fn fail(&mut self, node: &Node, path: &Path<'_>, detail: String) {
        if self.errors.len() >= limits::ERRORS_MAX {
            return;
        }
        let kind = node.kind.map_or("", NodeType::name);
        let error = FieldError::new(FieldErrorKind::Invalid, path.shown(), detail);
        self.errors.push(error.with_value(Value::from(kind)));
    }
}

fn optional_value(value: OptionalValue) -> cel::Value {
    cel::Value::Opaque(Arc::new(value))
}

/// Evaluates an expression. The interpreter is not ours, and what it runs is not ours either: a
/// panic in it is an error of the rule.
fn run(program: &Program, scope: &Context<'_>) -> Result<cel::Value, String> {
    match catch_unwind(AssertUnwindSafe(|| scope.resolve(&program.expr))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(cel::ExecutionError::NoSuchKey(key))) => Err(format!("no such key: {key}")),
        Ok(Err(error)) => Err(short(error.to_string())),
        Err(_) => Err("internal error".to_owned()),
    }
}

/// Errors of the interpreter show whole values.
fn short(mut text: String) -> String {
    const LEN_MAX: usize = 256;
    if text.len() > LEN_MAX {
        let end = (0..=LEN_MAX)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

fn message(rule: &Rule, scope: &Context<'_>, measure: Measure) -> String {
    let made = rule.message_program.as_ref().and_then(|program| {
        program.shape.cost(measure)?;
        match run(program, scope) {
            Ok(cel::Value::String(text)) => {
                let text = text.trim();
                let fits = !text.is_empty() && text.len() <= limits::MESSAGE_LEN_MAX;
                (fits && !text.contains('\n')).then(|| text.to_owned())
            }
            _ => None,
        }
    });
    made.unwrap_or_else(|| match &rule.message {
        Some(message) => message.clone(),
        None => format!("failed rule: {}", rule.text),
    })
}

fn rule_error(
    rule: &Rule,
    node: &Node,
    value: &Value,
    detail: String,
    path: &Path<'_>,
) -> FieldError {
    let field = match &rule.field_path {
        Some(below) if matches!(path, Path::Root) => below.trim_start_matches('.').to_owned(),
        Some(below) if below.starts_with('[') => format!("{}{below}", path.text()),
        Some(below) => format!("{}.{}", path.text(), below.trim_start_matches('.')),
        None => path.shown(),
    };
    let is_compound = matches!(node.kind, Some(NodeType::Object | NodeType::Array));
    match rule.reason {
        FieldErrorKind::Duplicate if !is_compound => {
            FieldError::new(rule.reason, field, "").with_value(value.clone())
        }
        FieldErrorKind::Duplicate => FieldError::new(rule.reason, field, ""),
        FieldErrorKind::Invalid if !is_compound => {
            FieldError::new(rule.reason, field, detail).with_value(value.clone())
        }
        kind => FieldError::new(kind, field, detail),
    }
}
