//! A registry of OCI images.

use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use crate::build::servers;
use crate::limits::{READY_INTERVAL, READY_MAX};
use crate::process::Process;

/// A registry in memory, on loopback, over plain HTTP.
#[derive(Debug)]
pub struct Registry {
    process: Process,
    /// `127.0.0.1:PORT`, which begins the names of its images.
    pub address: String,
}

impl Registry {
    /// Starts an empty one; `None` on a machine without Go, which is told.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let Some(binary) = tokio::task::spawn_blocking(servers).await?? else {
            return Ok(None);
        };
        let mut command = Command::new(binary);
        let command = command.args(["registry", "--address", "127.0.0.1:0"]);
        let mut process = Process::start("registry", command)?;
        let started = Instant::now();
        loop {
            // The first line is its address.
            if let Some((address, _)) = process.log().split_once('\n') {
                let address = address.to_owned();
                return Ok(Some(Self { process, address }));
            }
            if process.ended().is_some() || started.elapsed() > READY_MAX {
                bail!("the registry did not start:\n{}", process.log());
            }
            tokio::time::sleep(READY_INTERVAL).await;
        }
    }

    /// What it was asked so far: a line each.
    pub fn log(&self) -> String {
        self.process.log()
    }
}
