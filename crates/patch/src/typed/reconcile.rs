//! Ownership after a schema change.

use crate::fieldset::{Entry, FieldSet};
use crate::path::PathElement;
use crate::types::{Declared, Type};

/// Turns ownership of parts into ownership of the whole where a list or map has become atomic;
/// `None` where nothing changes.
///
/// The other direction needs nothing: who owned the whole owns the field still
/// (structured-merge-diff, `ReconcileFieldSetWithSchema`).
pub(crate) fn reconcile<'a>(ty: Type<'_>, set: &FieldSet<'a>) -> Option<FieldSet<'a>> {
    let mut out: Option<FieldSet<'a>> = None;
    for (index, entry) in set.entries().iter().enumerate() {
        let change = child(ty, &entry.element).and_then(|child| reconcile_entry(child, entry));
        if let Some((member, below)) = change {
            let out = out.get_or_insert_with(|| set.clone());
            out.replace(index, member, below);
        }
    }
    out
}

fn reconcile_entry<'a>(ty: Type<'_>, entry: &Entry<'a>) -> Option<(bool, FieldSet<'a>)> {
    if entry.below.is_empty() || ty.is_free() {
        return None;
    }
    let is_list = ty.map_is_atomic().is_none();
    let atomic = if is_list {
        ty.list_is_atomic()
    } else {
        ty.map_is_atomic()
    };
    // A deduced type cannot say that it has changed.
    if atomic == Some(true) && !ty.is_deduced() {
        return Some((true, FieldSet::default()));
    }
    reconcile(ty, &entry.below).map(|below| (entry.member, below))
}

fn child<'t>(ty: Type<'t>, element: &PathElement<'_>) -> Option<Type<'t>> {
    match element {
        PathElement::Field(name) => {
            ty.map_is_atomic()?;
            let field = ty.field(name);
            (field.declared != Declared::Unknown).then_some(field.ty)
        }
        PathElement::Key(_) | PathElement::Item(_) | PathElement::Index(_) => {
            ty.list_is_atomic()?;
            Some(ty.item())
        }
    }
}

#[cfg(test)]
mod tests {
    use ecp_schema::Structural;
    use serde_json::json;

    use super::*;
    use crate::apply::Typing;

    fn check(fields: serde_json::Value, want: Option<serde_json::Value>) {
        let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "properties": {
                "granular": {"type": "object", "additionalProperties": {"type": "string"}},
                "atomic": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "list": {"type": "array", "items": {"type": "string"}},
                "set": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }}}))
        .expect("structural");
        let set = FieldSet::decode(&fields).expect("FieldsV1");
        let result = reconcile(Type::of(Typing::Schema(schema.root())), &set);
        assert_eq!(result.map(|set| set.encode()), want, "{fields}");
    }

    #[test]
    fn parts_of_what_has_become_atomic_are_the_whole() {
        check(
            json!({"f:spec": {"f:atomic": {"f:a": {}}, "f:granular": {"f:a": {}}}}),
            Some(json!({"f:spec": {"f:atomic": {}, "f:granular": {"f:a": {}}}})),
        );
        check(
            json!({"f:spec": {"f:list": {".": {}, "v:\"a\"": {}}, "f:set": {"v:\"a\"": {}}}}),
            Some(json!({"f:spec": {"f:list": {}, "f:set": {"v:\"a\"": {}}}})),
        );
    }

    #[test]
    fn what_fits_the_schema_stays() {
        check(
            json!({"f:spec": {"f:atomic": {}, "f:granular": {}, "f:list": {}}}),
            None,
        );
        check(
            json!({"f:spec": {"f:any": {"f:x": {"f:y": {}}}, "f:unknown": {"f:z": {}}}}),
            None,
        );
    }
}
