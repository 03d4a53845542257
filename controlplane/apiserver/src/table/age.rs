//! Durations as people read them in tables.

use jiff::Timestamp;

/// Time since a moment, as kubectl prints ages (`k8s.io/apimachinery/pkg/util/duration`).
pub(super) fn age(then: Timestamp, now: Timestamp) -> String {
    human_duration(now.as_second() - then.as_second())
}

/// A duration with one or two units, never with more precision than its size deserves.
pub fn human_duration(seconds: i64) -> String {
    /// `unit` with the remainder in a smaller unit, which is left out when it is 0.
    fn two(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    }
    // Clocks may differ by a second.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_in_kubectl() {
        let (m, h, d) = (60, 3600, 86400);
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (9 * m + 59, "9m59s"),
            (10 * m + 30, "10m"),
            (179 * m, "179m"),
            (3 * h, "3h"),
            (3 * h + 5 * m, "3h5m"),
            (47 * h, "47h"),
            (2 * d, "2d"),
            (2 * d + 3 * h, "2d3h"),
            (8 * d + 5 * h, "8d"),
            (729 * d, "729d"),
            (730 * d, "2y"),
            (731 * d, "2y1d"),
            (365 * 9 * d, "9y"),
        ];
        for (seconds, want) in cases {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }
}
