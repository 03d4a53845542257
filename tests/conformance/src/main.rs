//! The `ecp` binary under the name that this package's tests find it by.

fn main() -> std::process::ExitCode {
    ecp_cli::run()
}
