//! Repository rules as tests.
