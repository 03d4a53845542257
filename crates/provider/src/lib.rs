//! The managed resource runtime: what crossplane-runtime is to Go.
