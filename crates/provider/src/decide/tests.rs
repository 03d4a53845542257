//! The decision table, walked through completely.

use super::*;

const BOOLS: [bool; 2] = [false, true];

/// Every combination of facts.
fn all_facts() -> Vec<Facts> {
    let mut policies: Vec<Result<Policies, PolicyError>> = Policies::supported().map(Ok).collect();
    policies.push(Err(PolicyError(vec!["Create".into()])));
    let mut all = Vec::new();
    for bits in 0..256_u32 {
        let bit = |n: u32| bits & (1 << n) != 0;
        for policies in &policies {
            all.push(Facts {
                paused: bit(0),
                policies: policies.clone(),
                deleting: bit(1),
                other_finalizers: bit(2),
                unnamed: bit(3),
                create_incomplete: bit(4),
                in_grace: bit(5),
                deterministic: bit(6),
                finds_by_tag: bit(7),
            });
        }
    }
    all
}

fn all_seen() -> Vec<Seen> {
    let mut all = vec![Seen::Missing];
    for up_to_date in BOOLS {
        for late_init in BOOLS {
            for settling in BOOLS {
                all.push(Seen::Exists {
                    up_to_date,
                    late_init,
                    settling,
                });
            }
        }
    }
    all
}

/// A cloud and an object, as far as the decision can tell.
#[derive(Clone)]
struct World {
    facts: Facts,
    progress: Progress,
    cloud: Seen,
    /// Whether the cloud does at once what it is asked.
    fast: bool,
}

impl World {
    /// Does one step as the adapter would.
    fn act(&mut self, step: &Step) {
        match step {
            Step::Initialize => self.facts.unnamed = false,
            Step::Connect => self.progress.connected = true,
            Step::FindByTag => self.progress.create_settled = true,
            Step::Observe => self.progress.seen = Some(self.cloud),
            Step::Prepare => self.progress.prepared = true,
            Step::Create => {
                self.progress.created = true;
                self.progress.seen = None;
                if self.fast {
                    self.cloud = done(false);
                }
            }
            Step::LateInitialize => self.progress.late_initialized = true,
            Step::Update => {
                self.progress.updated = true;
                self.progress.seen = None;
                if self.fast {
                    self.cloud = done(false);
                }
            }
            Step::Delete => {
                self.progress.deleted = true;
                self.progress.seen = None;
                if self.fast {
                    self.cloud = Seen::Missing;
                }
            }
            Step::Release | Step::Stop(_) => {}
        }
    }

    /// All steps until the end.
    fn run(mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            let step = decide(&self.facts, &self.progress);
            steps.push(step.clone());
            if matches!(step, Step::Stop(_) | Step::Release) {
                return steps;
            }
            assert!(steps.len() < crate::limits::STEPS_MAX, "{steps:?}");
            self.act(&step);
        }
    }
}

fn done(settling: bool) -> Seen {
    Seen::Exists {
        up_to_date: true,
        late_init: false,
        settling,
    }
}

fn plain() -> Facts {
    Facts {
        paused: false,
        policies: Ok(Policies::ALL),
        deleting: false,
        other_finalizers: false,
        unnamed: false,
        create_incomplete: false,
        in_grace: false,
        deterministic: false,
        finds_by_tag: false,
    }
}

fn run(facts: Facts, cloud: Seen, fast: bool) -> Vec<Step> {
    World {
        facts,
        progress: Progress::default(),
        cloud,
        fast,
    }
    .run()
}

/// Each combination of facts, cloud and speed ends, and keeps the rules that matter most.
#[test]
fn every_combination_ends_and_keeps_the_rules() {
    let mut walked = 0;
    for facts in all_facts() {
        for cloud in all_seen() {
            for fast in BOOLS {
                let steps = run(facts.clone(), cloud, fast);
                check(&facts, cloud, &steps);
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 256 * 15 * 9 * 2);
}

fn check(facts: &Facts, cloud: Seen, steps: &[Step]) {
    let has = |s: &Step| steps.contains(s);
    let count = |s: &Step| steps.iter().filter(|t| *t == s).count();
    let context = || format!("{facts:?} {cloud:?} {steps:?}");
    let changes = [Step::Create, Step::Update, Step::Delete];
    for step in &changes {
        assert!(count(step) <= 1, "a change happens once: {}", context());
    }
    let Ok(policies) = &facts.policies else {
        assert_eq!(steps.len(), 1, "invalid policies do nothing: {}", context());
        return;
    };
    if facts.paused || policies.paused() {
        assert_eq!(steps, [Step::Stop(Stop::Paused)], "{}", context());
        return;
    }
    if has(&Step::Create) {
        assert!(policies.create() && !facts.deleting, "{}", context());
        assert_eq!(cloud, Seen::Missing, "{}", context());
        assert!(!facts.in_grace, "{}", context());
        let sure = !facts.create_incomplete || facts.deterministic || has(&Step::FindByTag);
        assert!(sure, "nothing is created twice: {}", context());
    }
    if has(&Step::Update) {
        assert!(policies.update() && !facts.deleting, "{}", context());
    }
    if has(&Step::Delete) {
        assert!(policies.delete() && facts.deleting, "{}", context());
        assert!(!facts.other_finalizers, "{}", context());
    }
    if has(&Step::LateInitialize) {
        assert!(policies.late_initialize(), "{}", context());
    }
    if has(&Step::Release) && policies.delete() {
        let gone = cloud == Seen::Missing || has(&Step::Delete);
        assert!(gone, "an existing resource is not forgotten: {}", context());
    }
    for change in changes.iter().filter(|s| has(s)) {
        let at = |s: &Step| steps.iter().position(|t| t == s);
        assert!(at(&Step::Observe) < at(change), "{}", context());
        assert!(at(&Step::Connect) < at(&Step::Observe), "{}", context());
    }
}

#[test]
fn a_missing_resource_is_created_and_observed() {
    use Step::{Connect, Create, Observe, Prepare};
    assert_eq!(
        run(plain(), Seen::Missing, true),
        [
            Connect,
            Observe,
            Create,
            Observe,
            Prepare,
            Step::Stop(Stop::Synced { settling: false })
        ]
    );
    assert_eq!(
        run(plain(), Seen::Missing, false),
        [Connect, Observe, Create, Observe, Step::Stop(Stop::Created)]
    );
}

#[test]
fn an_unknown_creation_is_refused_or_looked_up() {
    let mut facts = plain();
    facts.create_incomplete = true;
    assert_eq!(
        run(facts.clone(), Seen::Missing, true),
        [Step::Stop(Stop::CreateIncomplete)]
    );
    facts.deleting = true;
    assert_eq!(
        run(facts.clone(), done(false), true),
        [Step::Stop(Stop::CreateIncomplete)],
        "not even deleted: what exists is unknown"
    );
    facts.deleting = false;
    facts.finds_by_tag = true;
    assert_eq!(
        run(facts.clone(), Seen::Missing, true)[..4],
        [Step::Connect, Step::FindByTag, Step::Observe, Step::Create]
    );
    facts.deterministic = true;
    assert_eq!(
        run(facts, Seen::Missing, true)[..3],
        [Step::Connect, Step::Observe, Step::Create]
    );
}

#[test]
fn observe_and_update_policies_never_create() {
    // public-bugs A37, provider-kubernetes#542.
    let mut facts = plain();
    facts.policies = Policies::parse(&["Observe", "Update"]);
    assert_eq!(
        run(facts, Seen::Missing, true),
        [
            Step::Connect,
            Step::Observe,
            Step::Stop(Stop::MissingNotCreated)
        ]
    );
}

#[test]
fn without_delete_policy_the_external_resource_is_left_alone() {
    let mut facts = plain();
    facts.deleting = true;
    facts.policies = Policies::parse(&["Observe", "Create", "Update"]);
    assert_eq!(run(facts, done(false), true), [Step::Release]);
}

#[test]
fn others_finalizers_keep_the_external_resource() {
    let mut facts = plain();
    facts.deleting = true;
    facts.other_finalizers = true;
    for cloud in [Seen::Missing, done(false)] {
        assert_eq!(
            run(facts.clone(), cloud, true).last(),
            Some(&Step::Stop(Stop::OtherFinalizers))
        );
    }
}

#[test]
fn a_resource_created_a_moment_ago_is_not_taken_for_missing() {
    let mut facts = plain();
    facts.in_grace = true;
    assert_eq!(
        run(facts.clone(), Seen::Missing, true).last(),
        Some(&Step::Stop(Stop::Pending))
    );
    facts.deleting = true;
    assert_eq!(
        run(facts.clone(), Seen::Missing, true).last(),
        Some(&Step::Stop(Stop::Pending)),
        "a deletion, too, waits until it can see what it deletes"
    );
    assert_eq!(
        run(facts, done(false), true).last(),
        Some(&Step::Release),
        "having deleted it, it may be missing"
    );
}

#[test]
fn a_difference_that_stays_is_updated_once_a_reconcile() {
    let cloud = Seen::Exists {
        up_to_date: false,
        late_init: false,
        settling: false,
    };
    let steps = run(plain(), cloud, false);
    assert_eq!(
        steps[2..],
        [
            Step::Prepare,
            Step::Update,
            Step::Observe,
            Step::Stop(Stop::Synced { settling: false })
        ]
    );
}
