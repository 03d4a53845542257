//! The `provider-ecp` binary under the name that this package's tests find it by.

fn main() -> anyhow::Result<()> {
    provider_ecp::main()
}
