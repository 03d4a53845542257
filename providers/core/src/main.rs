//! `provider-ecp`: workspace namespaces, in a process of its own.

fn main() -> anyhow::Result<()> {
    provider_ecp::main()
}
