//! Bars for layers, on a terminal.

use std::collections::BTreeMap;

use ecp_oci::{Digest, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::sync::Mutex;

const HEX_SHOWN: usize = 12;

/// A bar for each layer; where stderr is no terminal, none is drawn.
#[derive(Default)]
pub(super) struct Bars {
    all: MultiProgress,
    bars: Mutex<BTreeMap<Digest, ProgressBar>>,
}

impl Bars {
    fn with(&self, digest: &Digest, act: impl FnOnce(&ProgressBar)) {
        let bars = self.bars.lock();
        if let Some(bar) = bars.as_ref().ok().and_then(|bars| bars.get(digest)) {
            act(bar);
        }
    }
}

impl Progress for Bars {
    fn begin(&self, digest: &Digest, size: u64) {
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {bytes}/{total_bytes}");
        let bar = self.all.add(ProgressBar::new(size));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(digest.hex()[..HEX_SHOWN].to_owned());
        if let Ok(mut bars) = self.bars.lock() {
            bars.insert(digest.clone(), bar);
        }
    }

    fn advance(&self, digest: &Digest, bytes: u64) {
        self.with(digest, |bar| bar.inc(bytes));
    }

    fn end(&self, digest: &Digest) {
        self.with(digest, ProgressBar::finish);
    }
}
