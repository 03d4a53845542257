//! Walks expressions.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};

/// Calls `change` with every call of an expression.
pub(super) fn calls(expr: &mut IdedExpr, change: &mut impl FnMut(&mut CallExpr)) {
    match &mut expr.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            change(call);
            call.target
                .iter_mut()
                .for_each(|target| calls(target, change));
            call.args
                .iter_mut()
                .for_each(|argument| calls(argument, change));
        }
        Expr::Comprehension(loops) => {
            for part in [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ] {
                calls(part, change);
            }
        }
        Expr::List(list) => list
            .elements
            .iter_mut()
            .for_each(|element| calls(element, change)),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|e| entry(&mut e.expr, change)),
        Expr::Struct(value) => value
            .entries
            .iter_mut()
            .for_each(|e| entry(&mut e.expr, change)),
        Expr::Select(select) => calls(&mut select.operand, change),
    }
}

fn entry(entry: &mut EntryExpr, change: &mut impl FnMut(&mut CallExpr)) {
    match entry {
        EntryExpr::StructField(field) => calls(&mut field.value, change),
        EntryExpr::MapEntry(entry) => {
            calls(&mut entry.key, change);
            calls(&mut entry.value, change);
        }
    }
}

/// How deep an expression is.
pub(super) fn depth(expr: &IdedExpr) -> usize {
    let deepest = |parts: &mut dyn Iterator<Item = &IdedExpr>| parts.map(depth).max().unwrap_or(0);
    let below = match &expr.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Comprehension(loops) => deepest(
            &mut [
                &loops.iter_range,
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ]
            .into_iter(),
        ),
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => map
            .entries
            .iter()
            .map(|entry| entry_depth(&entry.expr))
            .max()
            .unwrap_or(0),
        Expr::Struct(value) => value
            .entries
            .iter()
            .map(|entry| entry_depth(&entry.expr))
            .max()
            .unwrap_or(0),
        Expr::Select(select) => depth(&select.operand),
    };
    below + 1
}

fn entry_depth(entry: &EntryExpr) -> usize {
    match entry {
        EntryExpr::StructField(field) => depth(&field.value),
        EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
    }
}
