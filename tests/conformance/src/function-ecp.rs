//! The `function-ecp` binary under the name that this package's tests find it by.

fn main() -> anyhow::Result<()> {
    function_ecp::main()
}
