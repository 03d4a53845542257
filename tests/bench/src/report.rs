//! The report.

use std::time::Duration;

use crate::Options;
use crate::load::Load;

/// One line of the report.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) figure: String,
    pub(crate) reference: String,
}

impl Row {
    /// A figure without a reference.
    pub(crate) fn plain(what: &str, figure: String) -> Self {
        Self {
            what: what.into(),
            figure,
            reference: String::new(),
        }
    }

    /// A rate beside the bare server's, and beside a kube-apiserver's where one was measured.
    pub(crate) fn rate(what: &str, load: &Load, bare: &Load, kube: Option<&Load>) -> Self {
        let mut reference = format!(
            "{:.2} of a bare HTTP server ({:.0}/s)",
            load.per_second / bare.per_second,
            bare.per_second
        );
        if let Some(kube) = kube {
            reference.push_str(&format!(
                "; {:.1} of kube-apiserver and etcd ({})",
                load.per_second / kube.per_second,
                figure(kube)
            ));
        }
        Self {
            what: what.into(),
            figure: figure(load),
            reference,
        }
    }
}

fn figure(load: &Load) -> String {
    let (p50, p99) = (milliseconds(load.p50), milliseconds(load.p99));
    format!("{:.0}/s, p50 {p50}, p99 {p99}", load.per_second)
}

/// A duration as a person reads it.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The report as Markdown.
pub(crate) fn markdown(options: &Options, rows: &[Row]) -> String {
    let mut text = String::from("# Performance\n\n");
    text.push_str("Made by `make bench`; do not edit.\n\n");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    text.push_str(&format!(
        "One run of the release binary on {cores} cores, {} clients over loopback in the same \
         machine, {} s for each rate.\nThe reference is a bare HTTP server that answers the same \
         bytes to the same clients in the same run; compare ratios, not rates, between machines.\n",
        options.clients, options.seconds
    ));
    text.push('\n');
    text.push_str("| what | figure | against the reference |\n|---|---|---|\n");
    for row in rows {
        text.push_str(&format!(
            "| {} | {} | {} |\n",
            row.what, row.figure, row.reference
        ));
    }
    text
}
