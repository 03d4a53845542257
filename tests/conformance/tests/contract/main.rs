//! The SECA contract over real HTTP against the real binary, in both profiles and both reference
//! policies. Written from the contract alone; what an answer looks like is held against the
//! OpenAPI document that the server serves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bodies;
mod check;
mod kinds;
mod openapi;
mod rules;
mod site;
mod world;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use site::Site;
use world::{Mode, World};

/// Tests that run at once. They mostly wait.
const TESTS_AT_ONCE: usize = 8;

/// On which servers a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// What neither profile nor policy changes: on one of the first two.
    One,
    /// What only one of both changes: on the first two, which have each of both.
    Two,
    /// What their combination changes.
    All,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A test.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    on: On,
    run: fn(Site) -> Running,
}

/// Lists the tests of a module: `Two name, All name`.
macro_rules! cases {
    ($($on:ident $name:ident),* $(,)?) => {
        pub(crate) const CASES: &[crate::Case] = &[$(crate::Case {
            name: concat!(module_path!(), "::", stringify!($name)),
            on: crate::On::$on,
            run: |site| Box::pin($name(site)),
        }),*];
    };
}
use cases;

/// Lists a test that runs once for each kind: `NAME: Two test`.
macro_rules! cases_of_kinds {
    ($list:ident: $on:ident $test:ident) => {
        crate::cases_of_kinds!(@ $list $on $test
            ROLE ROLE_ASSIGNMENT WORKSPACE BLOCK_STORAGE IMAGE NETWORK INTERNET_GATEWAY
            ROUTE_TABLE SUBNET PUBLIC_IP SECURITY_GROUP_RULE SECURITY_GROUP NIC INSTANCE);
    };
    (@ $list:ident $on:ident $test:ident $($kind:ident)*) => {
        pub(crate) const $list: &[crate::Case] = &[$(crate::Case {
            name: concat!(module_path!(), "::", stringify!($test), "::", stringify!($kind)),
            on: crate::On::$on,
            run: |site| Box::pin($test(site, &crate::kinds::$kind)),
        }),*];
    };
}
use cases_of_kinds;

/// The servers, each started when it is first needed and stopped with this value.
#[derive(Debug, Default)]
struct Servers([OnceCell<Arc<World>>; Mode::ALL.len()]);

impl Servers {
    async fn get(&self, index: usize) -> Arc<World> {
        let start = async || Arc::new(World::start(Mode::ALL[index]).await);
        self.0[index].get_or_init(start).await.clone()
    }
}

fn trials(runtime: &Arc<Runtime>, servers: &Arc<Servers>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        for (n, case) in rules::all().enumerate() {
            let runs = match case.on {
                On::One => index == n % 2,
                On::Two => index < 2,
                On::All => true,
            };
            if !runs {
                continue;
            }
            let (runtime, servers) = (runtime.clone(), servers.clone());
            let name = case.name.trim_start_matches("contract::rules::");
            let name = format!("{}::{name}", mode.options().join("_"));
            trials.push(Trial::test(name, move || {
                runtime.block_on(async move {
                    let world = servers.get(index).await;
                    (case.run)(Site::new(world)).await;
                });
                Ok(())
            }));
        }
    }
    trials
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TESTS_AT_ONCE);
    let runtime = Runtime::new().map(Arc::new).unwrap();
    let servers = Arc::new(Servers::default());
    let conclusion = libtest_mimic::run(&arguments, trials(&runtime, &servers));
    // The servers end with this process, and not after it.
    drop(servers);
    conclusion.exit_code()
}
