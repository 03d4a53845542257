//! What a person reads: data on stdout, everything else on stderr.

use std::io::{self, Write as _};

/// Writes lines to stderr. A closed stderr is nobody's concern.
pub(crate) fn note(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(writeln!(stderr, "{text}"));
}

/// Writes an error with all its causes, and its hint when it has one.
pub(crate) fn error(error: &anyhow::Error) {
    let mut causes = error.chain().map(ToString::to_string);
    let mut text = format!("error: {}", causes.next().unwrap_or_default());
    for cause in causes.filter(|c| !c.is_empty()) {
        if !text.ends_with(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    note(&text);
    if let Some(hint) = error.downcast_ref::<Hint>() {
        note(&format!("hint: {}", hint.0));
    }
}

/// Advice that goes with an error; attach it with `context`.
#[derive(Debug)]
pub(crate) struct Hint(pub(crate) String);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
