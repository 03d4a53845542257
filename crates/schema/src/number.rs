//! JSON numbers, compared and printed as Go does.

use std::cmp::Ordering;

use serde_json::Number;

/// Whether a JSON number is an integer to Kubernetes: a JSON integer of 64 bits, or a float without
/// a fraction that a double holds exactly.
pub(crate) fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(is_integral)
}

fn is_integral(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0
}

/// Compares two numbers exactly where both are integers.
pub(crate) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Whether `value` is a multiple of `factor`.
pub(crate) fn is_multiple(value: &Number, factor: &Number) -> bool {
    if let (Some(value), Some(factor)) = (value.as_i128(), factor.as_i128()) {
        return factor != 0 && value % factor == 0;
    }
    let (Some(value), Some(factor)) = (value.as_f64(), factor.as_f64()) else {
        return false;
    };
    // The two forms keep the quotient exact for factors such as 0.01, as upstream does.
    let quotient = if factor < 1.0 {
        1.0 / factor * value
    } else {
        value / factor
    };
    is_integral(quotient)
}

/// A bound as it is printed beside a value: integers without exponent if the value is an integer.
pub(crate) fn show_bound(bound: &Number, value: &Number) -> String {
    if let Some(bound) = bound.as_i128() {
        if value.is_f64() {
            return show_float(bound as f64);
        }
        return bound.to_string();
    }
    match bound.as_f64() {
        Some(bound) if is_integral(bound) && !value.is_f64() => format!("{bound:.0}"),
        Some(bound) => show_float(bound),
        None => bound.to_string(),
    }
}

/// A number as Go's `%v` prints it.
pub(crate) fn show(number: &Number) -> String {
    if number.is_f64() {
        number.as_f64().map_or_else(String::new, show_float)
    } else {
        number.to_string()
    }
}

/// A float as Go's `%v` prints it: shortest digits, with an exponent below 1e-4 and from 1e6 on.
fn show_float(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rust's `{:e}` gives the shortest digits: `1.5e6`.
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return scientific;
    };
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: serde_json::Value) -> Number {
        value.as_number().cloned().expect("a number")
    }

    #[test]
    fn integers_are_json_integers_and_whole_floats() {
        assert!(is_integer(&number(json!(3))));
        assert!(is_integer(&number(json!(3.0))));
        assert!(!is_integer(&number(json!(3.5))));
        assert!(!is_integer(&number(json!(1e300))));
        assert!(!is_integer(&number(json!(u64::MAX))));
        assert!(is_integer(&number(json!(i64::MIN))));
    }

    #[test]
    fn large_integers_compare_exactly() {
        let a = number(json!(9_007_199_254_740_993_i64));
        let b = number(json!(9_007_199_254_740_992_i64));
        assert_eq!(compare(&a, &b), Some(Ordering::Greater));
        assert_eq!(
            compare(&number(json!(1)), &number(json!(1.5))),
            Some(Ordering::Less)
        );
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let shown: Vec<_> = [
            1e6,
            123456789.5,
            1e21,
            0.0001,
            0.00001,
            1.5,
            100_000.0,
            2.5e-7,
        ]
        .into_iter()
        .map(show_float)
        .collect();
        let want = [
            "1e+06",
            "1.234567895e+08",
            "1e+21",
            "0.0001",
            "1e-05",
            "1.5",
            "100000",
            "2.5e-07",
        ];
        assert_eq!(shown, want);
    }

    #[test]
    fn multiples_of_fractions_are_exact() {
        assert!(is_multiple(&number(json!(0.3)), &number(json!(0.1))));
        assert!(is_multiple(&number(json!(9)), &number(json!(3))));
        assert!(!is_multiple(&number(json!(10)), &number(json!(3))));
        assert!(!is_multiple(&number(json!(10)), &number(json!(0))));
    }
}
