//! What makes an applied configuration unfit to merge.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::types::{Declared, Type};

/// Why a configuration cannot be merged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Path, such as `.spec.ports`.
    pub(crate) field: String,
    /// What is wrong.
    pub(crate) reason: String,
}

/// Checks that each item of a set or keyed list has an identity of its own, and that every field is
/// declared. The values themselves are the validator's business.
pub(crate) fn check(ty: Type<'_>, value: &Value) -> Result<(), Fault> {
    check_at(ty, value).map_err(|mut fault| {
        if fault.field.is_empty() {
            fault.field.push('.');
        }
        fault
    })
}

fn check_at(ty: Type<'_>, value: &Value) -> Result<(), Fault> {
    if ty.is_free() {
        return Ok(());
    }
    let below = |prefix: String| {
        move |fault: Fault| Fault {
            field: prefix + &fault.field,
            ..fault
        }
    };
    match value {
        Value::Object(map) if ty.map_is_atomic().is_some() => {
            for (name, value) in map {
                let field = ty.field(name);
                if field.declared == Declared::Unknown {
                    return Err(Fault {
                        field: format!(".{name}"),
                        reason: "field not declared in schema".to_owned(),
                    });
                }
                check_at(field.ty, value).map_err(below(format!(".{name}")))?;
            }
        }
        Value::Array(items) if ty.list_is_atomic() == Some(true) => {
            for (index, item) in items.iter().enumerate() {
                check_at(ty.item(), item).map_err(below(format!("[{index}]")))?;
            }
        }
        Value::Array(items) if ty.list_is_atomic() == Some(false) => {
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = ty.element(item).map_err(|reason| Fault {
                    field: String::new(),
                    reason: format!("element {index}: {reason}"),
                })?;
                check_at(ty.item(), item).map_err(below(element.to_string()))?;
                if seen.contains(&element) {
                    return Err(Fault {
                        field: String::new(),
                        reason: format!("duplicate entries for key {element}"),
                    });
                }
                seen.insert(element);
            }
        }
        _ => {}
    }
    Ok(())
}
