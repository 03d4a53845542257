//! The SECA REST API over composite resources.
