//! Processes that end with the test.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;

/// A process with its output; killed when dropped.
///
/// Its standard input is a pipe that nobody writes to. The kernel closes it when the test process
/// ends in whatever way, so that one which watches it ends too.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(output) = child.stdout.take() {
            follow(output, log.clone());
        }
        if let Some(output) = child.stderr.take() {
            follow(output, log.clone());
        }
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far, to standard output and standard error.
    pub fn log(&self) -> String {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

fn follow(output: impl std::io::Read + Send + 'static, log: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(&line);
            log.push('\n');
        }
    });
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Ports on loopback that nobody listens on now, for servers that cannot choose one themselves.
///
/// # Errors
/// There are none left.
pub fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    // All are held until the last one is found, so that they differ.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
        *port = listener.local_addr().context("reading its port")?.port();
        held.push(listener);
    }
    Ok(ports)
}
