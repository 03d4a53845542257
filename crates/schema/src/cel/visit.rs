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
