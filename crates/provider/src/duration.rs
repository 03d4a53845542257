//! Durations as Go writes them (`1m30s`, `250ms`): the form of the poll interval annotation and of
//! provider flags.

use std::time::Duration;

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration such as \"1m30s\" or \"250ms\"")]
pub struct DurationError(pub String);

/// Parses a non-negative Go duration (`time.ParseDuration`): one or more decimal numbers with a
/// unit, or `0`.
///
/// # Errors
/// The text is no duration, is negative, or does not fit.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let fail = || DurationError(text.chars().take(64).collect());
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(fail());
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let number_len = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(fail)?;
        let (number, tail) = rest.split_at(number_len);
        let unit_len = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_len);
        let value: f64 = number.parse().map_err(|_| fail())?;
        seconds += value * unit_seconds(unit).ok_or_else(fail)?;
        rest = next;
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| fail())
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        for (text, want) in [
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("5s", Duration::from_secs(5)),
            ("1m30s", Duration::from_secs(90)),
            ("1.5h", Duration::from_secs(5400)),
            ("250ms", Duration::from_millis(250)),
            ("10us", Duration::from_micros(10)),
            ("+1s", Duration::from_secs(1)),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "5", "s", "-1s", "1d", "1s2", ".s", "1..2s", "1e400h", "１s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let huge = format!("{}h", "9".repeat(40));
        assert!(parse(&huge).is_err());
    }
}
