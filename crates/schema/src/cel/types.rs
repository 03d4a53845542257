//! Types of expressions, as far as a schema tells them.
//!
//! Kubernetes refuses rules that do not type-check when a CRD is written; `cel` has no checker. This
//! one knows the types of fields, variables, literals and operators, checks what it knows, and takes
//! the rest as `dyn`. What it lets pass fails closed when the rule runs.

use std::fmt;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators,
};

use super::escape::escape;
use super::functions;
use crate::checks::Pattern;
use crate::format::FormatKind;
use crate::limits;
use crate::node::{Node, NodeType};

/// Items that a loop over something of unknown length is counted with.
const UNKNOWN_LEN: u64 = 1_000;

/// Type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'n> {
    /// Unknown; checked when the rule runs.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// A list, and the most items it has.
    List(Box<Type<'n>>, u64),
    /// A map by text, and the most entries it has.
    Map(Box<Type<'n>>, u64),
    /// An object with declared fields.
    Object(&'n Node),
    /// A resource: an object that also has `apiVersion`, `kind` and `metadata`.
    Resource(&'n Node),
    /// `metadata` of a resource, of which rules see the names.
    Metadata,
    Optional(Box<Type<'n>>),
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(item, _) => write!(f, "list({item})"),
            Self::Map(value, _) => write!(f, "map(string, {value})"),
            Self::Object(_) | Self::Resource(_) | Self::Metadata => f.write_str("object"),
            Self::Optional(value) => write!(f, "optional_type({value})"),
        }
    }
}

impl<'n> Type<'n> {
    /// The type of values of a node.
    pub(super) fn of(node: &'n Node, is_resource: bool) -> Self {
        if is_resource || node.embedded_resource {
            return Self::Resource(node);
        }
        if node.int_or_string {
            return Self::Dyn;
        }
        let checks = node.checks.as_deref();
        match node.kind {
            None => Self::Dyn,
            Some(NodeType::Object) => match &node.additional {
                Some(value) if node.properties.is_empty() && is_declared(value) => {
                    let declared = checks.and_then(|checks| checks.properties_max);
                    let len = declared.unwrap_or_else(|| entries_max(value, 6));
                    Self::Map(Box::new(Self::of(value, false)), len)
                }
                // Rules do not see fields that a schema merely preserves.
                _ => Self::Object(node),
            },
            Some(NodeType::Array) => match &node.items {
                Some(item) => {
                    let declared = checks.and_then(|checks| checks.items_max);
                    let len = declared.unwrap_or_else(|| entries_max(item, 1));
                    Self::List(Box::new(Self::of(item, false)), len)
                }
                None => Self::List(Box::new(Self::Dyn), UNKNOWN_LEN),
            },
            Some(NodeType::String) => {
                match checks
                    .and_then(|checks| checks.format.as_ref())
                    .map(|format| format.kind)
                {
                    Some(FormatKind::DateTime | FormatKind::Date) => Self::Timestamp,
                    Some(FormatKind::Duration) => Self::Duration,
                    Some(FormatKind::Byte) => Self::Bytes,
                    _ => Self::String,
                }
            }
            Some(NodeType::Integer) => Self::Int,
            Some(NodeType::Number) => Self::Double,
            Some(NodeType::Boolean) => Self::Bool,
        }
    }

    /// Which types are equal to each other; `None` if any.
    fn class(&self) -> Option<u8> {
        Some(match self {
            Self::Dyn => return None,
            Self::Null => 0,
            Self::Bool => 1,
            Self::Int => 2,
            Self::Uint => 3,
            Self::Double => 4,
            Self::String => 5,
            Self::Bytes => 6,
            Self::Duration => 7,
            Self::Timestamp => 8,
            Self::List(..) => 9,
            Self::Map(..) => 10,
            Self::Object(_) | Self::Resource(_) | Self::Metadata => 11,
            Self::Optional(_) => 12,
        })
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether null may be compared with it.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Dyn
                | Self::Null
                | Self::Duration
                | Self::Timestamp
                | Self::Object(_)
                | Self::Resource(_)
                | Self::Metadata
                | Self::Optional(_)
        )
    }
}

/// Whether a node has a type that rules know.
fn is_declared(node: &Node) -> bool {
    node.kind.is_some() || node.int_or_string
}

/// Most entries that fit into a request.
fn entries_max(entry: &Node, overhead: u64) -> u64 {
    limits::REQUEST_SIZE_MAX / (size_min(entry) + overhead)
}

/// Fewest bytes of JSON that a value of a node has.
fn size_min(node: &Node) -> u64 {
    let checks = node.checks.as_deref();
    match node.kind {
        None | Some(NodeType::Integer | NodeType::Number) => 1,
        Some(NodeType::Boolean) => 4,
        Some(NodeType::Array) => 2,
        Some(NodeType::String) => 2 + checks.and_then(|checks| checks.length_min).unwrap_or(0),
        Some(NodeType::Object) => {
            let required = checks.map_or(&[][..], |checks| &checks.required);
            let fields = required.iter().filter_map(|name| {
                let property = node.properties.get(name)?;
                Some(name.len() as u64 + 3 + size_min(property))
            });
            2 + fields.sum::<u64>()
        }
    }
}

/// Infers types, with the variables in scope, and adds up what loops cost.
pub(super) struct Checker<'n> {
    scope: Vec<(String, Type<'n>)>,
    /// How often the expression at hand runs.
    times: u64,
    /// Steps of all loops.
    pub(super) cost: u64,
}

type Inferred<'n> = Result<Type<'n>, String>;

impl<'n> Checker<'n> {
    pub(super) fn new(variables: Vec<(String, Type<'n>)>) -> Self {
        Self {
            scope: variables,
            times: 1,
            cost: 1,
        }
    }

    pub(super) fn infer(&mut self, expr: &IdedExpr) -> Inferred<'n> {
        match &expr.expr {
            Expr::Unspecified => Ok(Type::Dyn),
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::String,
                LiteralValue::UInt(_) => Type::Uint,
            }),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => {
                let mut item = Type::Dyn;
                for element in &list.elements {
                    item = self.infer(element)?;
                }
                Ok(Type::List(Box::new(item), list.elements.len() as u64))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    self.entry(&entry.expr)?;
                }
                Ok(Type::Dyn)
            }
            Expr::Struct(value) => Err(format!("undeclared reference to '{}'", value.type_name)),
        }
    }

    fn entry(&mut self, entry: &EntryExpr) -> Result<(), String> {
        match entry {
            EntryExpr::StructField(field) => self.infer(&field.value).map(drop),
            EntryExpr::MapEntry(entry) => {
                self.infer(&entry.key)?;
                self.infer(&entry.value).map(drop)
            }
        }
    }

    fn variable(&self, name: &str) -> Inferred<'n> {
        let known = self.scope.iter().rev().find(|(known, _)| known == name);
        known
            .map(|(_, kind)| kind.clone())
            .ok_or_else(|| format!("undeclared reference to '{name}'"))
    }

    fn select(&mut self, select: &SelectExpr) -> Inferred<'n> {
        let operand = self.infer(&select.operand)?;
        let field = field(&operand, &select.field)?;
        Ok(if select.test { Type::Bool } else { field })
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Inferred<'n> {
        let range = self.infer(&loops.iter_range)?;
        let (item, len) = match range {
            Type::List(item, len) => (*item, len),
            Type::Map(_, len) => (Type::String, len),
            Type::Dyn => (Type::Dyn, UNKNOWN_LEN),
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                ));
            }
        };
        let outer = self.times;
        self.times = outer.saturating_mul(len.max(1));
        self.cost = self.cost.saturating_add(self.times);
        let depth = self.scope.len();
        let gathered = self.infer(&loops.accu_init)?;
        self.scope.push((loops.accu_var.clone(), gathered.clone()));
        self.scope.push((loops.iter_var.clone(), item));
        if let Some(second) = &loops.iter_var2 {
            self.scope.push((second.clone(), Type::Dyn));
        }
        self.infer(&loops.loop_cond)?;
        let step = self.infer(&loops.loop_step)?;
        self.scope.truncate(depth);
        self.times = outer;
        let gathered = match (gathered, step) {
            // What is gathered has at most as many items as the range.
            (Type::List(..), Type::List(item, _)) => Type::List(item, len),
            (gathered, _) => gathered,
        };
        self.scope.push((loops.accu_var.clone(), gathered));
        let result = self.infer(&loops.result);
        self.scope.truncate(depth);
        result
    }

    fn call(&mut self, call: &CallExpr) -> Inferred<'n> {
        let name = call.func_name.as_str();
        let mut qualified = name.to_owned();
        let mut target = None;
        if let Some(expr) = &call.target {
            match &expr.expr {
                Expr::Ident(space) if functions::is_namespace(space) && !self.declares(space) => {
                    qualified = format!("{space}.{name}");
                }
                _ => target = Some(self.infer(expr)?),
            }
        }
        if !functions::exists(&qualified) {
            return Err(format!("undeclared reference to '{qualified}'"));
        }
        let mut arguments = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            arguments.push(self.infer(argument)?);
        }
        if qualified == "matches" {
            check_pattern(&call.args)?;
        }
        match (target, arguments.as_slice()) {
            (None, [a]) => prefix(&qualified, a),
            (None, [a, b]) => infix(&qualified, a, b),
            (None, [condition, then, other]) if name == operators::CONDITIONAL => {
                must_be_bool(condition, &["_?_:_"])?;
                Ok(if then.class() == other.class() {
                    then.clone()
                } else {
                    Type::Dyn
                })
            }
            (Some(target), arguments) => method(&qualified, &target, arguments),
            (None, _) => Ok(result(&qualified)),
        }
    }

    fn declares(&self, name: &str) -> bool {
        self.scope.iter().any(|(known, _)| known == name)
    }
}

/// The type of a field, spelled as rules spell it.
fn field<'n>(operand: &Type<'n>, name: &str) -> Inferred<'n> {
    let undefined = || Err(format!("undefined field '{name}'"));
    match operand {
        Type::Dyn => Ok(Type::Dyn),
        Type::Map(value, _) => Ok((**value).clone()),
        Type::Optional(value) => Ok(Type::Optional(Box::new(field(value, name)?))),
        Type::Resource(_) if matches!(name, "apiVersion" | "kind") => Ok(Type::String),
        Type::Resource(_) if name == "metadata" => Ok(Type::Metadata),
        Type::Metadata if matches!(name, "name" | "generateName") => Ok(Type::String),
        Type::Metadata => undefined(),
        Type::Object(node) | Type::Resource(node) => {
            let found = node
                .properties
                .iter()
                .find(|(property, _)| escape(property).is_some_and(|escaped| escaped == name));
            match found {
                Some((_, child)) if is_declared(child) => Ok(Type::of(child, false)),
                _ => undefined(),
            }
        }
        other => Err(format!("type '{other}' does not support field selection")),
    }
}

fn no_overload(name: &str, types: &[&Type<'_>]) -> String {
    let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
    format!(
        "found no matching overload for '{name}' applied to '({})'",
        shown.join(", ")
    )
}

fn must_be_bool(kind: &Type<'_>, names: &[&str]) -> Result<(), String> {
    match kind {
        Type::Bool | Type::Dyn => Ok(()),
        other => Err(no_overload(names.first().unwrap_or(&""), &[other])),
    }
}

fn prefix<'n>(name: &str, a: &Type<'n>) -> Inferred<'n> {
    match name {
        operators::LOGICAL_NOT => must_be_bool(a, &[name]).map(|()| Type::Bool),
        operators::NEGATE => match a {
            Type::Int | Type::Double | Type::Dyn => Ok(a.clone()),
            other => Err(no_overload(name, &[other])),
        },
        "size" => match a {
            Type::Null
            | Type::Bool
            | Type::Double
            | Type::Uint
            | Type::Duration
            | Type::Timestamp
            | Type::Object(_)
            | Type::Resource(_)
            | Type::Metadata
            | Type::Int => Err(no_overload(name, &[a])),
            _ => Ok(Type::Int),
        },
        "dyn" => Ok(Type::Dyn),
        "optional.of" | "optional.ofNonZeroValue" => Ok(Type::Optional(Box::new(a.clone()))),
        _ => Ok(result(name)),
    }
}

fn infix<'n>(name: &str, a: &Type<'n>, b: &Type<'n>) -> Inferred<'n> {
    let alike = match (a.class(), b.class()) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let refused = || Err(no_overload(name, &[a, b]));
    match name {
        operators::EQUALS | operators::NOT_EQUALS => match (a, b) {
            (Type::Null, other) | (other, Type::Null) if !other.takes_null() => refused(),
            (Type::Null, _) | (_, Type::Null) => Ok(Type::Bool),
            _ if alike => Ok(Type::Bool),
            _ => refused(),
        },
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => {
            let ordered = alike || a.is_number() && b.is_number();
            if ordered { Ok(Type::Bool) } else { refused() }
        }
        operators::LOGICAL_AND | operators::LOGICAL_OR => {
            for side in [a, b] {
                if !matches!(side, Type::Bool | Type::Dyn) {
                    return refused();
                }
            }
            Ok(Type::Bool)
        }
        operators::ADD | operators::SUBSTRACT => match (a, b) {
            (Type::Timestamp, Type::Timestamp) => Ok(Type::Duration),
            (Type::Timestamp, Type::Duration) | (Type::Duration, Type::Timestamp) => {
                Ok(Type::Timestamp)
            }
            // Literal lists begin empty, so the other side knows the items.
            (Type::List(item, len), Type::List(other, other_len)) => {
                let item = if matches!(**item, Type::Dyn) {
                    other
                } else {
                    item
                };
                Ok(Type::List(item.clone(), len.saturating_add(*other_len)))
            }
            (Type::Dyn, _) => Ok(Type::Dyn),
            _ if alike => Ok(a.clone()),
            _ => refused(),
        },
        operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            if alike {
                Ok(a.clone())
            } else {
                refused()
            }
        }
        operators::INDEX => index(name, a, b),
        operators::OPT_INDEX => {
            let inner = if let Type::Optional(inner) = a {
                inner
            } else {
                a
            };
            Ok(Type::Optional(Box::new(index(name, inner, b)?)))
        }
        operators::IN => match b {
            Type::List(item, _) if infix(operators::EQUALS, a, item).is_err() => refused(),
            Type::Map(..) if !matches!(a, Type::String | Type::Dyn) => refused(),
            Type::List(..) | Type::Map(..) | Type::Dyn => Ok(Type::Bool),
            _ => refused(),
        },
        _ => Ok(result(name)),
    }
}

fn index<'n>(name: &str, a: &Type<'n>, b: &Type<'n>) -> Inferred<'n> {
    match (a, b) {
        (Type::List(item, _), Type::Int | Type::Dyn) => Ok((**item).clone()),
        (Type::Map(value, _), Type::String | Type::Dyn) => Ok((**value).clone()),
        (Type::Dyn | Type::Optional(_) | Type::Object(_) | Type::Resource(_), _) => Ok(Type::Dyn),
        _ => Err(no_overload(name, &[a, b])),
    }
}

fn method<'n>(name: &str, target: &Type<'n>, arguments: &[Type<'n>]) -> Inferred<'n> {
    let needs_text = matches!(
        name,
        "startsWith"
            | "endsWith"
            | "matches"
            | "contains"
            | "lowerAscii"
            | "upperAscii"
            | "trim"
            | "split"
            | "replace"
            | "substring"
            | "charAt"
            | "find"
            | "findAll"
    );
    if needs_text && !matches!(target, Type::String | Type::Dyn | Type::Bytes) {
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let shown = shown.join(", ");
        return Err(format!(
            "found no matching overload for '{name}' applied to '{target}.({shown})'"
        ));
    }
    match (name, target) {
        ("size", target) => prefix(name, target),
        ("value" | "orValue", Type::Optional(value)) => Ok((**value).clone()),
        ("or", Type::Optional(_)) => Ok(target.clone()),
        ("min" | "max" | "sum", Type::List(item, _)) => Ok((**item).clone()),
        ("sort" | "distinct" | "slice" | "reverse", Type::List(..)) => Ok(target.clone()),
        ("first" | "last", Type::List(item, _)) => Ok(Type::Optional(item.clone())),
        _ => Ok(result(name)),
    }
}

/// What a function returns, whatever it is called on.
fn result<'n>(name: &str) -> Type<'n> {
    match name {
        "contains" | "startsWith" | "endsWith" | "matches" | "hasValue" | "isSorted"
        | "isQuantity" | "isSemver" | "isURL" | "isIP" | "isCIDR" | "isGreaterThan"
        | "isLessThan" | "sets.contains" | "sets.equivalent" | "sets.intersects" => Type::Bool,
        "size" | "indexOf" | "lastIndexOf" | "int" | "compareTo" | "getFullYear" | "getMonth"
        | "getDayOfYear" | "getDayOfMonth" | "getDate" | "getDayOfWeek" | "getHours"
        | "getMinutes" | "getSeconds" | "getMilliseconds" | "family" | "prefixLength" => Type::Int,
        "string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "charAt"
        | "join" | "format" | "find" | "strings.quote" | "getScheme" | "getHost"
        | "getHostname" | "getPort" | "getEscapedPath" | "base64.encode" => Type::String,
        "split" | "findAll" => Type::List(Box::new(Type::String), UNKNOWN_LEN),
        "double" => Type::Double,
        "uint" => Type::Uint,
        "bytes" | "base64.decode" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "optional.none" => Type::Optional(Box::new(Type::Dyn)),
        _ => Type::Dyn,
    }
}

fn check_pattern(arguments: &[IdedExpr]) -> Result<(), String> {
    match arguments.last().map(|argument| &argument.expr) {
        Some(Expr::Literal(LiteralValue::String(pattern))) => Pattern::new(pattern.inner())
            .map(drop)
            .map_err(|error| format!("invalid matches argument: {error}")),
        _ => Ok(()),
    }
}
