//! `allOf`, `anyOf`, `oneOf` and `not` (kube-openapi `validate/schema_props.go`).

use serde_json::Value;

use crate::checks::Checks;
use crate::node::Node;
use crate::path::Path;
use crate::validate::{self, Report};

/// Checks the junctors of a node. Like upstream, their errors do not ratchet by themselves.
pub(crate) fn check(checks: &Checks, value: &Value, path: &Path<'_>, report: &mut Report) {
    let name = || Value::from(path.text());
    if !checks.any_of.is_empty() && count_valid(&checks.any_of, value, 1, report) == 0 {
        report.plain(|| format!("{} must validate at least one schema (anyOf)", name()));
        report_best(&checks.any_of, value, path, report);
    }
    if !checks.one_of.is_empty() {
        match count_valid(&checks.one_of, value, usize::MAX, report) {
            1 => {}
            0 => {
                report.plain(|| {
                    format!(
                        "{} must validate one and only one schema (oneOf). Found none valid",
                        name()
                    )
                });
                report_best(&checks.one_of, value, path, report);
            }
            count => report.plain(|| {
                format!(
                    "{} must validate one and only one schema (oneOf). Found {count} valid \
                     alternatives",
                    name()
                )
            }),
        }
    }
    check_all(&checks.all_of, value, path, report);
    if let Some(body) = &checks.not {
        let mut inner = Report::quiet();
        validate::check(body, value, None, path, &mut inner);
        if !inner.failed {
            report.plain(|| format!("{} must not validate the schema (not)", name()));
        }
    }
}

/// How many branches are valid, counted up to `enough`.
fn count_valid(branches: &[Node], value: &Value, enough: usize, report: &mut Report) -> usize {
    let mut count = 0;
    for branch in branches {
        let mut inner = Report::quiet();
        validate::check(branch, value, None, &Path::Root, &mut inner);
        if !inner.failed {
            report.matched += inner.matched;
            count += 1;
            if count == enough {
                break;
            }
        }
    }
    count
}

/// Reports the errors of the branch that most checks were made in.
fn report_best(branches: &[Node], value: &Value, path: &Path<'_>, report: &mut Report) {
    if report.quiet {
        return;
    }
    let mut best: Option<Report> = None;
    for branch in branches {
        let mut inner = Report::default();
        validate::check(branch, value, None, path, &mut inner);
        if best
            .as_ref()
            .is_none_or(|best| inner.matched > best.matched)
        {
            best = Some(inner);
        }
    }
    if let Some(mut best) = best {
        report.matched += best.matched;
        report.errors.append(&mut best.errors);
    }
}

fn check_all(branches: &[Node], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut valid = 0;
    for branch in branches {
        let mut inner = Report {
            quiet: report.quiet,
            ..Report::default()
        };
        validate::check(branch, value, None, path, &mut inner);
        valid += usize::from(!inner.failed);
        report.failed |= inner.failed;
        report.matched += inner.matched;
        report.errors.append(&mut inner.errors);
    }
    if valid != branches.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        report.plain(|| {
            format!(
                "{} must validate all the schemas (allOf){none}",
                Value::from(path.text())
            )
        });
    }
}
