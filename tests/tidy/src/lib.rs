//! Repository rules as tests: see `tests/`.
