//! `ecp`: the European Control Plane in one binary.

fn main() -> std::process::ExitCode {
    ecp_cli::run()
}
