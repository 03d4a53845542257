//! The functions rules may call.

use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, ResolveResult, Value};

thread_local! {
    static BASE: Context<'static> = base();
}

/// Runs with a context that has all functions. Contexts are not shared between threads, and filling
/// one costs more than evaluating a rule.
pub(super) fn with_context<T>(run: impl FnOnce(&Context<'static>) -> T) -> T {
    BASE.with(run)
}

fn base() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    context
}

/// Functions of the Kubernetes CEL environment that `cel` and `kube-cel` have, by name.
///
/// `lists.range` is left out: Kubernetes does not have it, and it makes lists of any size.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    // CEL.
    "contains", "size", "startsWith", "endsWith", "matches", "string", "bytes", "double", "int",
    "uint", "dyn", "duration", "timestamp", "getFullYear", "getMonth", "getDayOfYear",
    "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds",
    "getMilliseconds", "optional.none", "optional.of", "optional.ofNonZeroValue", "value",
    "hasValue", "or", "orValue", "max", "min",
    // Strings.
    "charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "replace", "split",
    "substring", "trim", "join", "reverse", "strings.quote", "format", "find", "findAll",
    // Lists and sets.
    "isSorted", "sum", "slice", "sort", "flatten", "distinct", "first", "last", "sets.contains",
    "sets.equivalent", "sets.intersects",
    // Quantities, versions, URLs, addresses.
    "quantity", "isQuantity", "isInteger", "asInteger", "asApproximateFloat", "sign", "add", "sub",
    "isGreaterThan", "isLessThan", "compareTo", "semver", "isSemver", "major", "minor", "patch",
    "url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery",
    "ip", "isIP", "ip.isCanonical", "family", "isLoopback", "isUnspecified",
    "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "isIPv4", "isIPv6", "cidr",
    "isCIDR", "isCIDRv4", "isCIDRv6", "containsIP", "containsCIDR", "prefixLength", "masked",
    // Formats, mathematics, encoders.
    "format.dns1123Label", "format.dns1123Subdomain", "format.dns1035Label",
    "format.dns1035LabelPrefix", "format.dns1123LabelPrefix", "format.dns1123SubdomainPrefix",
    "format.qualifiedName", "format.labelValue", "format.uri", "format.uuid", "format.byte",
    "format.date", "format.datetime", "format.named", "validate", "jsonpatch.escapeKey",
    "math.ceil", "math.floor", "math.round", "math.trunc", "math.abs", "math.sign", "math.isInf",
    "math.isNaN", "math.isFinite", "math.bitAnd", "math.bitOr", "math.bitXor", "math.bitNot",
    "math.bitShiftLeft", "math.bitShiftRight", "math.sqrt", "math.greatest", "math.least",
    "base64.decode", "base64.encode",
];

/// Names before the dot of the functions that have one.
const NAMESPACES: [&str; 8] = [
    "base64",
    "format",
    "ip",
    "jsonpatch",
    "math",
    "optional",
    "sets",
    "strings",
];

/// Whether a function exists; operators (`_+_`, `@in`) always do.
pub(super) fn exists(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_alphabetic()) || KNOWN.contains(&name)
}

/// Whether an identifier before a call is a namespace: `math.abs(x)`.
pub(super) fn is_namespace(name: &str) -> bool {
    NAMESPACES.contains(&name)
}

/// Functions whose cost grows with the text they read.
pub(super) fn reads_text(name: &str) -> bool {
    matches!(
        name,
        "contains"
            | "startsWith"
            | "endsWith"
            | "matches"
            | "find"
            | "findAll"
            | "replace"
            | "split"
            | "indexOf"
            | "lastIndexOf"
            | "join"
            | "format"
            | "reverse"
            | "lowerAscii"
            | "upperAscii"
            | "trim"
            | "substring"
            | "validate"
            | "quantity"
            | "isQuantity"
            | "url"
            | "isURL"
            | "string"
            | "bytes"
            | "_+_"
            | "_==_"
            | "_!=_"
            | "@in"
    )
}
