//! The composition function: SECA resources to managed resources of one cloud.
