//! Benchmarks, reported as ratios.
