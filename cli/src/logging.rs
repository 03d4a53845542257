//! Logs: quiet by default, JSON where no person reads them.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Starts logging to stderr. `RUST_LOG`, when set and valid, overrides the rest.
pub(crate) fn init(verbosity: u8, access_log: bool) {
    let level = match verbosity {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    // Transports are chatty below what helps anybody.
    let mut default = format!("{level},h2=warn,hyper=warn,hyper_util=warn,rustls=warn,tower=warn");
    // Told by its own flag: it is one line a request.
    let access = if access_log || verbosity > 0 {
        "info"
    } else {
        "off"
    };
    default.push_str(&format!(",ecp_facade::access={access}"));
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV);
    let wanted = wanted.ok().filter(|wanted| !wanted.is_empty());
    let filter = match wanted.as_deref().map(EnvFilter::try_new) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            crate::output::note(&format!("warning: RUST_LOG is ignored: {error}"));
            EnvFilter::new(default)
        }
        None => EnvFilter::new(default),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.compact().init();
    } else {
        builder.json().init();
    }
}
