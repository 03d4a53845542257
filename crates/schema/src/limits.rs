//! Limits of schemas and of the objects they check.

/// Deepest schema. Each level costs a stack frame in every pass.
pub(crate) const SCHEMA_DEPTH_MAX: usize = 64;
/// Deepest object. serde_json itself stops parsing at 128.
pub(crate) const OBJECT_DEPTH_MAX: usize = 120;
/// Nodes of one schema, junctor branches included.
pub(crate) const SCHEMA_NODES_MAX: usize = 50_000;
/// Branches of one `allOf`, `anyOf` or `oneOf`.
pub(crate) const JUNCTOR_BRANCHES_MAX: usize = 256;
/// Junctors (`allOf`, `anyOf`, `oneOf`, `not`) within each other.
pub(crate) const JUNCTOR_DEPTH_MAX: usize = 8;
/// Bytes of one compiled `pattern`.
pub(crate) const PATTERN_SIZE_MAX: usize = 1 << 20;
/// Bytes of one CEL expression. The CRD API has no bound of its own.
pub(crate) const RULE_LEN_MAX: usize = 8 * 1024;
/// Signs in a CEL expression that is parsed on the stack at hand.
pub(crate) const RULE_OPERATORS_INLINE: usize = 64;
/// Signs in one CEL expression.
pub(crate) const RULE_OPERATORS_MAX: usize = 2_000;
/// Bytes of stack for each sign of longer ones (measured without optimisation: half of it).
pub(crate) const RULE_STACK_PER_OPERATOR: usize = 64 * 1024;
/// Deepest expression tree. Evaluation descends as deep, in a megabyte of stack without optimisation.
pub(crate) const RULE_TREE_DEPTH_MAX: usize = 48;
/// Rules of one schema.
pub(crate) const RULES_MAX: usize = 1_000;
/// Static cost of one rule (apiextensions `StaticEstimatedCostLimit`).
pub(crate) const RULE_COST_MAX: u64 = 10_000_000;
/// Static cost of all rules of a schema (apiextensions `StaticEstimatedCRDCostLimit`).
pub(crate) const SCHEMA_COST_MAX: u64 = 100_000_000;
/// Bytes of a message that a `messageExpression` makes (celconfig
/// `MaxEvaluatedMessageExpressionSizeBytes`).
pub(crate) const MESSAGE_LEN_MAX: usize = 5 * 1024;
/// Bytes of one request, which bound collections that declare no maximum
/// (apiserver `DefaultMaxRequestSizeBytes`).
pub(crate) const REQUEST_SIZE_MAX: u64 = 3 * 1024 * 1024;
/// Errors of one kind that a validation reports, and removed fields that pruning does: a request can
/// hold a million.
pub(crate) const ERRORS_MAX: usize = 256;
/// Bytes of one key that a path shows: a request can hold a key of its whole size, and an error below
/// it for every other byte.
pub(crate) const PATH_STEP_LEN_MAX: usize = 256;
