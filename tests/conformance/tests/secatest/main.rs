//! Runs the SECA conformance suite, whose binary `ECP_TEST_SECATEST` names, against `ecp up` under
//! each reference policy, and tells what passed (docs/conformance.md).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "it reports")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use ecp_harness::Ecp;
use serde_json::Value;
use tokio::process::Command;

/// Names the suite's binary.
const VARIABLE: &str = "ECP_TEST_SECATEST";
/// Scenarios that the suite has.
const SCENARIOS: usize = 55;
/// Longest time that the suite may take; it asks for ever for what never comes.
const SUITE_MAX: Duration = Duration::from_secs(600);
/// Users that the suite is told of, and the server too.
const USERS: [&str; 2] = ["user1@secapi.com", "user2@secapi.com"];

/// A reference policy, and the scenarios that cannot pass under it: each contradicts one that
/// passes (docs/conformance.md).
struct Policy {
    name: &'static str,
    options: &'static [&'static str],
    impossible: [&'static str; 3],
}

const POLICIES: [Policy; 2] = [
    Policy {
        name: "reject",
        options: &[],
        impossible: [
            "Authorization.V1.RoleAssignmentLifeCycle",
            "Network.V1.ProviderLifeCycle",
            "Usage.V1.FoundationProviders",
        ],
    },
    Policy {
        name: "defer",
        options: &["--references=defer"],
        impossible: [
            "Authorization.V1.RoleAssignmentError",
            "Network.V1.NicError",
            "Storage.V1.ImageError",
        ],
    },
];

/// Result of each scenario: nothing where it passed, else why not.
type Results = BTreeMap<String, Option<String>>;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(suite) = std::env::var_os(VARIABLE) else {
        println!("secatest: skipped, nothing was run: {VARIABLE} names no binary");
        return ExitCode::SUCCESS;
    };
    let suite = std::path::absolute(suite).unwrap();
    let mut as_expected = true;
    let mut union = BTreeMap::<String, bool>::new();
    for policy in &POLICIES {
        let started = Instant::now();
        let results = run(&suite, policy).await;
        as_expected &= report(policy, &results, started.elapsed());
        for (name, why) in results {
            *union.entry(name).or_default() |= why.is_none();
        }
    }
    let passed = union.values().filter(|passed| **passed).count();
    println!("union: {passed} of {} passed", union.len());
    if as_expected && passed == SCENARIOS && union.len() == SCENARIOS {
        println!("as expected: what fails under one policy contradicts what passes under it");
        return ExitCode::SUCCESS;
    }
    println!("NOT as expected");
    ExitCode::FAILURE
}

/// Prints what became of the scenarios; whether it is what must be.
fn report(policy: &Policy, results: &Results, took: Duration) -> bool {
    let failed: Vec<_> = results
        .iter()
        .filter_map(|(name, why)| Some((name.as_str(), why.as_ref()?)))
        .collect();
    println!(
        "{}: {} of {} passed, {} failed, in {:.1} s",
        policy.name,
        results.len() - failed.len(),
        results.len(),
        failed.len(),
        took.as_secs_f64()
    );
    for (name, why) in &failed {
        let known = policy.impossible.contains(name);
        let mark = if known { "expected" } else { "UNEXPECTED" };
        println!("  {mark}: {name}: {why}");
    }
    results.len() == SCENARIOS && failed.iter().map(|(name, _)| *name).eq(policy.impossible)
}

async fn run(suite: &Path, policy: &Policy) -> Results {
    let dir = tempfile::tempdir().unwrap();
    let users = dir.path().join("users.csv");
    let lines = USERS.map(|user| format!("token-of-{user},{user}\n"));
    std::fs::write(&users, lines.concat()).unwrap();
    let mut args = vec!["--ephemeral", "--users", users.to_str().unwrap()];
    args.extend(policy.options);
    let ecp = Ecp::start(&args).await;
    let summary = dir.path().join("summary.json");
    let mut running = Command::new(suite);
    running
        .arg("run")
        .args([
            "--provider.region.v1",
            &format!("{}/providers/seca.region", ecp.rest),
        ])
        .args(["--provider.authorization.v1"])
        .arg(format!("{}/providers/seca.authorization", ecp.rest))
        .args(["--client.auth.token", &ecp.token])
        .args(["--client.region", "region-1", "--client.tenant", "tenant-1"])
        .args(["--scenarios.users", &USERS.join(",")])
        .args(["--scenarios.cidr", "10.1.0.0/16"])
        .args(["--scenarios.public.ips", "52.93.126.1/26"])
        // It asks again at once and often: the server is asynchronous, but fast.
        .args(["--retry.base.delay", "0", "--retry.base.interval", "0"])
        .args(["--retry.max.attempts", "100000"])
        .arg("--report.results.path")
        .arg(dir.path().join("results"))
        .arg("--output.summary.path")
        .arg(&summary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let status = match tokio::time::timeout(SUITE_MAX, running.status()).await {
        Ok(status) => status.unwrap().to_string(),
        Err(_) => format!("it did not end within {SUITE_MAX:?}"),
    };
    let text = std::fs::read_to_string(&summary)
        .unwrap_or_else(|error| panic!("{status}, and no summary: {error}"));
    let summary: Value = serde_json::from_str(&text).unwrap();
    let scenarios = summary["scenarios"].as_array().unwrap();
    scenarios.iter().map(result).collect()
}

fn result(scenario: &Value) -> (String, Option<String>) {
    let name = scenario["name"].as_str().unwrap().to_owned();
    let why = match scenario["status"].as_str() {
        Some("passed") => None,
        status => Some(why(scenario).unwrap_or_else(|| status.unwrap_or("no status").into())),
    };
    (name, why)
}

/// The step that failed, and the words of what it got.
fn why(scenario: &Value) -> Option<String> {
    let failed = |v: &&Value| v["status"] != "passed";
    let step = scenario["steps"].as_array()?.iter().find(failed)?;
    let message = scenario["error"]["message"].as_str().unwrap_or_default();
    let words: Vec<&str> = message
        .split_once("Error:")
        .map_or("", |(_, after)| after)
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Test:"))
        .filter(|line| !line.is_empty())
        .collect();
    Some(format!("{}: {}", step["name"].as_str()?, words.join(" ")))
}
