//! The RunFunction protocol on the wire: the plain types of [`ecp_xr::function`] to protobuf and
//! back, and the two ways to run a function: in process and over gRPC.
//!
//! Invariant: knows no Kubernetes client and no particular function.
//!
//! Entry points: [`FunctionRunner`], [`InProcess`], [`GrpcRunner`]; [`to_plain`] and [`from_plain`]
//! for the side that serves.

mod convert;
mod grpc;
mod json;
pub mod limits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ecp_xr::function::{Request, Response};

pub use convert::{from_plain, from_plain_for, to_plain};
pub use grpc::{GrpcConfig, GrpcRunner, Transport};
pub use json::{map_to_struct, struct_to_map, value_to_struct};

/// Why a function did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No function of that name is installed.
    #[error("function {0:?} is not installed")]
    NotFound(String),
    /// It cannot be reached, or broke off.
    #[error("cannot run function {name:?}: {reason}")]
    Transport {
        /// Function name.
        name: String,
        /// What went wrong.
        reason: String,
    },
}

/// Runs composition functions by the name that `functionRef.name` gives.
#[async_trait]
pub trait FunctionRunner: Send + Sync + fmt::Debug + 'static {
    /// Runs one function once. The requirements loop is the caller's.
    ///
    /// # Errors
    /// See [`RunError`]; a fatal result of the function is an `Ok` response.
    async fn run(&self, name: &str, request: Request) -> Result<Response, RunError>;
}

/// A function as a plain Rust function.
pub type PlainFunction = Arc<dyn Fn(Request) -> Response + Send + Sync>;

/// Functions that run in this process.
#[derive(Clone, Default)]
pub struct InProcess {
    functions: BTreeMap<String, PlainFunction>,
}

impl InProcess {
    /// The same set with one more function.
    pub fn with(mut self, name: &str, function: PlainFunction) -> Self {
        self.functions.insert(name.into(), function);
        self
    }
}

impl InProcess {
    /// Whether there is a function of that name.
    pub fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// These functions, and those of another runner for all other names.
    pub fn or(self, rest: Arc<dyn FunctionRunner>) -> Layered {
        Layered {
            in_process: self,
            rest,
        }
    }
}

/// Functions in this process, and elsewhere for all other names.
#[derive(Clone, Debug)]
pub struct Layered {
    in_process: InProcess,
    rest: Arc<dyn FunctionRunner>,
}

#[async_trait]
impl FunctionRunner for Layered {
    async fn run(&self, name: &str, request: Request) -> Result<Response, RunError> {
        if self.in_process.has(name) {
            self.in_process.run(name, request).await
        } else {
            self.rest.run(name, request).await
        }
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.functions.keys()).finish()
    }
}

#[async_trait]
impl FunctionRunner for InProcess {
    async fn run(&self, name: &str, request: Request) -> Result<Response, RunError> {
        let function = self
            .functions
            .get(name)
            .ok_or_else(|| RunError::NotFound(name.to_owned()))?;
        Ok(function(request))
    }
}
