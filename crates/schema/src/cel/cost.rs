//! What a rule may cost.
//!
//! `cel` does not count steps, so cost is bounded before a rule runs, from its shape (known when
//! the schema is compiled) and the sizes in the value (known when it is converted): loops multiply
//! the length of the longest collection, calls that read text the length of the longest text, and
//! calls that make text the size of what they may make. The bound is an upper one. A rule over it is
//! not run, and fails.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};

use super::functions;

/// Steps that one evaluation may take; a second of work or less.
const STEPS_MAX: u64 = 20_000_000;
/// Bytes that one call may make.
const TEXT_MADE_MAX: u64 = 16 * 1024 * 1024;

/// Sizes found in values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measure {
    collection_max: usize,
    text_max: usize,
    text_total: usize,
}

impl Measure {
    pub(super) fn collection(&mut self, len: usize) {
        self.collection_max = self.collection_max.max(len);
    }

    pub(super) fn text(&mut self, len: usize) {
        self.text_max = self.text_max.max(len);
        self.text_total += len;
    }
}

/// The shape of an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Nodes of the expression.
    nodes: u64,
    /// Loops within each other; one that gathers a list counts twice, for it copies the list.
    loops: u32,
    /// Whether text is read.
    reads_text: bool,
    /// Calls that make more text than they get, within each other.
    makes_text: u32,
    /// Longest literal list or map.
    literal_max: usize,
    /// Longest literal text.
    text_max: usize,
}

impl Shape {
    pub(super) fn of(expr: &IdedExpr) -> Self {
        let mut shape = Self {
            nodes: 1,
            ..Self::default()
        };
        match &expr.expr {
            Expr::Unspecified | Expr::Ident(_) => {}
            Expr::Literal(LiteralValue::String(text)) => shape.text_max = text.inner().len(),
            Expr::Literal(_) => {}
            Expr::Select(select) => shape.join(Self::of(&select.operand)),
            Expr::List(list) => {
                shape.literal_max = list.elements.len();
                list.elements
                    .iter()
                    .for_each(|element| shape.join(Self::of(element)));
            }
            Expr::Map(map) => {
                shape.literal_max = map.entries.len();
                map.entries
                    .iter()
                    .for_each(|entry| shape.entry(&entry.expr));
            }
            Expr::Struct(value) => value
                .entries
                .iter()
                .for_each(|entry| shape.entry(&entry.expr)),
            Expr::Call(call) => shape.call(call),
            Expr::Comprehension(loops) => {
                shape.join(Self::of(&loops.loop_cond));
                shape.join(Self::of(&loops.loop_step));
                shape.join(Self::of(&loops.accu_init));
                shape.join(Self::of(&loops.result));
                let gathers = matches!(loops.accu_init.expr, Expr::List(_));
                shape.loops += if gathers { 2 } else { 1 };
                shape.join(Self::of(&loops.iter_range));
            }
        }
        shape
    }

    fn join(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.loops = self.loops.max(other.loops);
        self.reads_text |= other.reads_text;
        self.makes_text = self.makes_text.max(other.makes_text);
        self.literal_max = self.literal_max.max(other.literal_max);
        self.text_max = self.text_max.max(other.text_max);
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.join(Self::of(&field.value)),
            EntryExpr::MapEntry(entry) => {
                self.join(Self::of(&entry.key));
                self.join(Self::of(&entry.value));
            }
        }
    }

    fn call(&mut self, call: &CallExpr) {
        call.target
            .iter()
            .for_each(|target| self.join(Self::of(target)));
        call.args
            .iter()
            .for_each(|argument| self.join(Self::of(argument)));
        self.reads_text |= functions::reads_text(&call.func_name);
        let makes = match call.func_name.as_str() {
            "replace" => !is_shortening(&call.args),
            "join" | "format" => true,
            _ => false,
        };
        self.makes_text += u32::from(makes);
    }

    /// Upper bound of the steps that an evaluation on values of these sizes takes, or `None` if it
    /// is too much.
    pub(super) fn cost(&self, measure: Measure) -> Option<u64> {
        let longest = measure.collection_max.max(self.literal_max).max(1) as u64;
        let text = measure.text_max.max(self.text_max).max(1) as u64;
        let total = (measure.text_total + self.text_max).max(1) as u64;
        let mut made = total;
        for _ in 0..self.makes_text {
            made = made.saturating_mul(text);
        }
        if self.makes_text > 0 && made > TEXT_MADE_MAX {
            return None;
        }
        let text = if self.makes_text > 0 { made } else { text };
        let reading = if self.reads_text { 1 + text / 64 } else { 1 };
        let steps = longest.saturating_pow(self.loops).saturating_mul(reading);
        let steps = if self.loops == 0 {
            steps
        } else {
            steps.saturating_mul(self.nodes.min(4))
        };
        let steps = steps.saturating_add(self.nodes);
        (steps <= STEPS_MAX).then_some(steps)
    }
}

/// Whether `replace` puts in no more than it takes out, both literal.
fn is_shortening(arguments: &[IdedExpr]) -> bool {
    let literal = |i: usize| match arguments.get(i).map(|argument| &argument.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => Some(text.inner().len()),
        _ => None,
    };
    match (literal(0), literal(1)) {
        (Some(from), Some(to)) => from > 0 && to <= from,
        _ => false,
    }
}
