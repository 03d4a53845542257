//! `provider-dummy`: the reference cloud's provider in a process of its own.

fn main() -> anyhow::Result<()> {
    provider_dummy::main()
}
