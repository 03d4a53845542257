//! Static checks of rules (apiextensions `pkg/apis/apiextensions/validation/validation.go`).

use serde_json::Value;

use super::rule::{Program, Rule};
use super::types::{Checker, Type};
use crate::error::{FieldError, FieldErrorKind};
use crate::limits;
use crate::node::{ListType, Node};
use crate::path::Path;

/// Checks all rules of a schema.
pub(crate) fn check(root: &Node, errors: &mut Vec<FieldError>) {
    let mut walk = Walk { errors, total: 0 };
    walk.node(root, &Path::Root, true, None);
    if walk.total > limits::SCHEMA_COST_MAX {
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = over_budget(name, walk.total, limits::SCHEMA_COST_MAX);
        errors.push(FieldError::new(FieldErrorKind::Forbidden, "", detail));
    }
}

struct Walk<'a> {
    errors: &'a mut Vec<FieldError>,
    total: u64,
}

impl Walk<'_> {
    /// `uncorrelated` is the list around the node whose items have no old values.
    fn node(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        is_root: bool,
        uncorrelated: Option<&Path<'_>>,
    ) {
        let Some(checks) = node.checks.as_deref().filter(|checks| checks.has_rules) else {
            return;
        };
        let rules_path = path.field("x-kubernetes-validations");
        for (i, rule) in checks.rules.iter().enumerate() {
            self.rule(rule, node, &rules_path.index(i), is_root, uncorrelated);
        }
        let properties = path.field("properties");
        for (name, child) in &node.properties {
            self.node(child, &properties.key(name), false, uncorrelated);
        }
        if let Some(additional) = &node.additional {
            self.node(
                additional,
                &path.field("additionalProperties"),
                false,
                uncorrelated,
            );
        }
        if let Some(items) = &node.items {
            let uncorrelated = match node.list_type {
                ListType::Map => uncorrelated,
                ListType::Set | ListType::Atomic => Some(path),
            };
            self.node(items, &path.field("items"), false, uncorrelated);
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        node: &Node,
        path: &Path<'_>,
        is_root: bool,
        uncorrelated: Option<&Path<'_>>,
    ) {
        let mut fail = |name: &str, value: Value, detail: String| {
            let error = FieldError::new(FieldErrorKind::Invalid, path.field(name).text(), detail);
            self.errors.push(error.with_value(value));
        };
        let text = || Value::from(rule.text.as_str());
        if rule.uses_old_self
            && let Some(list) = uncorrelated
        {
            let list = list.text();
            fail(
                "rule",
                text(),
                format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                ),
            );
        }
        if let Some(optional) = rule.optional_old_self.filter(|_| !rule.uses_old_self) {
            let detail = "may not be set if oldSelf is not used in rule";
            fail("optionalOldSelf", Value::from(optional), detail.to_owned());
        }
        if let Some(field) = &rule.field_path
            && !is_field_path(field, node)
        {
            fail(
                "fieldPath",
                Value::from(field.as_str()),
                "must be a valid path".to_owned(),
            );
        }
        let mut cost = 0;
        match infer(&rule.program, rule, node, is_root, &mut cost) {
            Ok(Type::Bool | Type::Dyn) => {}
            Ok(_) => {
                fail(
                    "rule",
                    text(),
                    "compilation failed: must evaluate to a bool".to_owned(),
                );
            }
            Err(error) => fail("rule", text(), format!("compilation failed: {error}")),
        }
        if let Some(program) = &rule.message_program {
            let name = "messageExpression";
            let must_be = "compilation failed: must evaluate to a string";
            match infer(program, rule, node, is_root, &mut cost) {
                Ok(Type::String | Type::Dyn) => {}
                Ok(_) => fail(name, text(), must_be.to_owned()),
                Err(error) => fail(name, text(), format!("compilation failed: {error}")),
            }
        }
        self.total = self.total.saturating_add(cost);
        if cost > limits::RULE_COST_MAX {
            let detail = over_budget("estimated rule cost", cost, limits::RULE_COST_MAX);
            let field = path.field("rule").text();
            self.errors
                .push(FieldError::new(FieldErrorKind::Forbidden, field, detail));
        }
    }
}

fn infer<'n>(
    program: &Program,
    rule: &Rule,
    node: &'n Node,
    is_root: bool,
    cost: &mut u64,
) -> Result<Type<'n>, String> {
    let this = Type::of(node, is_root);
    let old = if rule.optional_old_self == Some(true) {
        Type::Optional(Box::new(this.clone()))
    } else {
        this.clone()
    };
    let mut checker = Checker::new(vec![("self".to_owned(), this), ("oldSelf".to_owned(), old)]);
    let inferred = checker.infer(&program.expr);
    *cost = cost.saturating_add(checker.cost);
    inferred
}

fn over_budget(name: &str, cost: u64, max: u64) -> String {
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where \
                arrays, maps, and strings are declared)";
    let factor = cost as f64 / max as f64;
    if factor > 100.0 {
        format!("{name} exceeds budget by factor of more than 100x {hint}")
    } else if factor < 1.5 {
        format!("{name} exceeds budget by factor of {factor:.6}x {hint}")
    } else {
        format!("{name} exceeds budget by factor of {factor:.1}x {hint}")
    }
}

/// Whether a path of fields (`.a.b`, `['a']`) leads somewhere in the schema.
fn is_field_path(path: &str, node: &Node) -> bool {
    let (mut rest, mut node) = (path, node);
    while !rest.is_empty() {
        let (name, tail) = if let Some(quoted) = rest.strip_prefix("['") {
            match quoted.split_once("']") {
                Some(split) => split,
                None => return false,
            }
        } else if let Some(plain) = rest.strip_prefix('.') {
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        } else {
            return false;
        };
        let child = if node.properties.is_empty() {
            node.additional.as_deref()
        } else {
            node.properties.get(name)
        };
        let Some(child) = child else {
            return false;
        };
        (rest, node) = (tail, child);
    }
    true
}
