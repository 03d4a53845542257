//! What a person reads: data on stdout, everything else on stderr.

use std::error::Error;
use std::io::{self, Write as _};

/// Writes lines to stderr. A closed stderr is nobody's concern.
pub(crate) fn note(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(writeln!(stderr, "{text}"));
}

/// Writes data to stdout, and the end of its line. Whoever reads no further has enough.
pub(crate) fn data(text: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes an error with all its causes, and its hint when it has one.
pub(crate) fn error(error: &anyhow::Error) {
    note(&describe(error));
}

/// The chain of causes on a line, and the hint on another.
fn describe(error: &anyhow::Error) -> String {
    let hint = error.downcast_ref::<Hint>().map(|hint| hint.0.as_str());
    let mut text = "error".to_owned();
    for cause in error.chain() {
        let (words, is_last) = words(cause);
        if Some(words.as_str()) != hint && !words.is_empty() && !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        if is_last {
            break;
        }
    }
    if let Some(hint) = hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// What a cause says, and whether its own causes only repeat it.
fn words(cause: &(dyn Error + 'static)) -> (String, bool) {
    match cause.downcast_ref::<kube::Error>() {
        // It displays all of the answer of the API server, of which the message is for people.
        Some(kube::Error::Api(status)) => (status.message.clone(), true),
        _ => (cause.to_string(), false),
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_answer_of_the_api_server_is_told_by_its_message() {
        let status = Status::failure("spec.scope is immutable", "Invalid").with_code(422);
        let error = anyhow::Error::from(kube::Error::Api(status.boxed())).context("applying x");
        assert_eq!(
            describe(&error),
            "error: applying x: spec.scope is immutable"
        );
    }

    #[test]
    fn a_hint_has_its_own_line() {
        let error = anyhow::anyhow!("address in use")
            .context("listening on :1")
            .context(Hint("take another port".into()));
        assert_eq!(
            describe(&error),
            "error: listening on :1: address in use\nhint: take another port"
        );
    }

    #[test]
    fn a_cause_that_is_quoted_already_is_not_repeated() {
        let error = anyhow::anyhow!("no such file").context("opening x: no such file");
        assert_eq!(describe(&error), "error: opening x: no such file");
    }
}
