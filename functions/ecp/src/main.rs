//! `function-ecp`: the composition function as a server.

fn main() -> anyhow::Result<()> {
    function_ecp::main()
}
