//! The cloud's promises.

mod machines;
mod networks;

use std::sync::atomic::{AtomicI64, Ordering};

use super::specs::{ImageSpec, ProjectSpec, VolumeSpec, VolumeTypeSpec};
use super::*;

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn now(&self) -> NowMs {
        let hand = Arc::clone(&self.0);
        Arc::new(move || hand.load(Ordering::SeqCst))
    }

    fn forward(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

const ACCOUNT: &str = "ClusterProviderConfig/default";

fn cloud() -> (Cloud, Hand) {
    let hand = Hand::default();
    (Cloud::in_memory(hand.now()), hand)
}

fn volume(size_gb: i64) -> Spec {
    Spec::Volume(VolumeSpec {
        location: "eu-1".into(),
        project: None,
        display_name: "data".into(),
        size_gb,
        volume_type: "remote-durable".into(),
        iops: None,
        source_image: None,
    })
}

fn volume_in(project: &str) -> Spec {
    let Spec::Volume(spec) = volume(1) else {
        unreachable!("a volume")
    };
    Spec::Volume(VolumeSpec {
        project: Some(project.into()),
        ..spec
    })
}

fn project() -> Spec {
    Spec::Project(ProjectSpec {
        location: "eu-1".into(),
        display_name: "prod".into(),
    })
}

fn image(source: &str) -> Spec {
    Spec::Image(ImageSpec {
        location: "eu-1".into(),
        display_name: "golden".into(),
        source_volume: Some(source.into()),
        cpu_architecture: "amd64".into(),
        boot: None,
        initializer: None,
    })
}

fn slow(ms: i64) -> Settings {
    Settings {
        create_ms: ms,
        update_ms: ms,
        delete_ms: ms,
        ..Settings::default()
    }
}

fn failing(operations: &[Operation], rate: f64) -> Settings {
    Settings {
        failure: Some(Failure {
            operations: operations.to_vec(),
            message: "out of order".into(),
            permanent: false,
            rate,
            reply_lost: false,
        }),
        ..Settings::default()
    }
}

fn state(cloud: &Cloud, id: &str) -> Option<State> {
    cloud.get(ACCOUNT, id).expect("an answer").map(|o| o.state)
}

#[test]
fn without_delay_everything_is_done_at_once() {
    let (cloud, _) = cloud();
    let made = cloud.create(ACCOUNT, "t", volume(5)).expect("created");
    assert_eq!((made.state, made.size_gb), (State::Active, Some(5)));
    let grown = cloud.update(ACCOUNT, &made.id, volume(8)).expect("grown");
    assert_eq!((grown.state, grown.size_gb), (State::Active, Some(8)));
    cloud.delete(ACCOUNT, &made.id).expect("deleted");
    assert_eq!(state(&cloud, &made.id), None);
    cloud.delete(ACCOUNT, &made.id).expect("deleted again");
    assert!(cloud.list_all().is_empty());
}

#[test]
fn what_an_image_runs_on_can_change_and_what_it_is_made_of_cannot() {
    let (cloud, _) = cloud();
    let volumes = [5, 6].map(|gb| cloud.create(ACCOUNT, &format!("v{gb}"), volume(gb)));
    let [first, second] = volumes.map(|v| v.expect("created").id);
    let made = cloud.create(ACCOUNT, "i", image(&first)).expect("created");
    let Spec::Image(mut arm) = image(&first) else {
        panic!("an image")
    };
    arm.cpu_architecture = "arm64".into();
    let changed = cloud.update(ACCOUNT, &made.id, Spec::Image(arm.clone()));
    assert_eq!(changed.expect("changed").spec, Spec::Image(arm));
    assert!(cloud.update(ACCOUNT, &made.id, image(&second)).is_err());
}

#[test]
fn with_delay_states_pass_in_order() {
    let (cloud, clock) = cloud();
    cloud.configure(ACCOUNT, &slow(1000));
    let id = cloud.create(ACCOUNT, "t", volume(5)).expect("created").id;
    clock.forward(999);
    assert_eq!(state(&cloud, &id), Some(State::Creating));
    clock.forward(1);
    assert_eq!(state(&cloud, &id), Some(State::Active));
    let growing = cloud.update(ACCOUNT, &id, volume(8)).expect("grown");
    assert_eq!((growing.state, growing.size_gb), (State::Updating, Some(5)));
    clock.forward(1000);
    let grown = cloud.get(ACCOUNT, &id).expect("an answer").expect("there");
    assert_eq!((grown.state, grown.size_gb), (State::Active, Some(8)));
    cloud.delete(ACCOUNT, &id).expect("deleted");
    clock.forward(999);
    assert_eq!(state(&cloud, &id), Some(State::Deleting));
    clock.forward(1);
    assert_eq!(state(&cloud, &id), None);
}

#[test]
fn new_settings_apply_to_what_is_under_way_and_not_to_what_has_ended() {
    let (cloud, _) = cloud();
    let done = cloud
        .create(ACCOUNT, "done", volume(5))
        .expect("created")
        .id;
    cloud.configure(ACCOUNT, &slow(60_000));
    let under_way = cloud
        .create(ACCOUNT, "slow", volume(5))
        .expect("created")
        .id;
    assert_eq!(state(&cloud, &done), Some(State::Active));
    assert_eq!(state(&cloud, &under_way), Some(State::Creating));
    cloud.configure(ACCOUNT, &Settings::default());
    assert_eq!(state(&cloud, &under_way), Some(State::Active));
}

#[test]
fn a_tag_makes_creation_idempotent() {
    let (cloud, _) = cloud();
    let first = cloud.create(ACCOUNT, "uid-1", volume(5)).expect("created");
    let second = cloud.create(ACCOUNT, "uid-1", volume(5)).expect("created");
    assert_eq!(first, second);
    assert_eq!(
        cloud.find(ACCOUNT, Kind::Volume, "uid-1"),
        Ok(Some(first.clone()))
    );
    assert_eq!(cloud.find(ACCOUNT, Kind::Image, "uid-1"), Ok(None));
    cloud.delete(ACCOUNT, &first.id).expect("deleted");
    assert_eq!(cloud.find(ACCOUNT, Kind::Volume, "uid-1"), Ok(None));
    let third = cloud.create(ACCOUNT, "uid-1", volume(5)).expect("created");
    assert_ne!(third.id, first.id);
}

#[test]
fn what_a_cloud_refuses_is_refused_with_words() {
    let (cloud, _) = cloud();
    let id = cloud.create(ACCOUNT, "t", volume(20)).expect("created").id;
    assert_eq!(
        cloud.update(ACCOUNT, &id, volume(10)),
        Err(CloudError::Refused(format!(
            "volume {id} cannot shrink from 20 GB to 10 GB"
        )))
    );
    let Err(CloudError::NotFound(text)) = cloud.create(ACCOUNT, "u", volume_in("prj-none")) else {
        panic!("a volume in no project");
    };
    assert_eq!(text, "project prj-none does not exist");
    assert!(matches!(
        cloud.create(ACCOUNT, "z", volume(0)),
        Err(CloudError::Refused(_))
    ));
    cloud.configure(
        ACCOUNT,
        &Settings {
            locations: Some(vec!["eu-2".into()]),
            ..Settings::default()
        },
    );
    assert_eq!(
        cloud.create(ACCOUNT, "v", volume(1)),
        Err(CloudError::Refused(
            "location \"eu-1\" is not offered".into()
        ))
    );
}

#[test]
fn volume_types_count_once_one_is_listed() {
    let (cloud, _) = cloud();
    let listed = |name: &str, min_size_gb| {
        Spec::VolumeType(VolumeTypeSpec {
            location: "eu-1".into(),
            name: name.into(),
            iops: 100,
            min_size_gb,
        })
    };
    cloud
        .create(ACCOUNT, "before", volume(1))
        .expect("nothing is listed yet");
    cloud
        .create(ACCOUNT, "vt", listed("local", 1))
        .expect("listed");
    assert_eq!(
        cloud.create(ACCOUNT, "a", volume(1)),
        Err(CloudError::Refused(
            "unknown volume type \"remote-durable\" in location \"eu-1\"".into()
        ))
    );
    cloud
        .create(ACCOUNT, "vt2", listed("remote-durable", 10))
        .expect("listed");
    assert_eq!(
        cloud.create(ACCOUNT, "b", volume(1)),
        Err(CloudError::Refused(
            "volumes of type \"remote-durable\" have at least 10 GB, not 1".into()
        ))
    );
    cloud.create(ACCOUNT, "c", volume(10)).expect("created");
}

#[test]
fn quotas_hold() {
    let (cloud, _) = cloud();
    cloud.configure(
        ACCOUNT,
        &Settings {
            quota: Quota {
                volumes: Some(2),
                size_gb: Some(10),
            },
            ..Settings::default()
        },
    );
    let first = cloud.create(ACCOUNT, "a", volume(4)).expect("created").id;
    assert!(matches!(
        cloud.create(ACCOUNT, "b", volume(7)),
        Err(CloudError::Refused(_))
    ));
    cloud.create(ACCOUNT, "c", volume(4)).expect("created");
    assert!(matches!(
        cloud.create(ACCOUNT, "d", volume(1)),
        Err(CloudError::Refused(_))
    ));
    assert!(matches!(
        cloud.update(ACCOUNT, &first, volume(7)),
        Err(CloudError::Refused(_))
    ));
    cloud
        .update(ACCOUNT, &first, volume(6))
        .expect("grown to the bound");
}

#[test]
fn what_is_in_use_is_not_deleted() {
    let (cloud, clock) = cloud();
    let project = cloud.create(ACCOUNT, "p", project()).expect("created").id;
    let inside = cloud
        .create(ACCOUNT, "v", volume_in(&project))
        .expect("created")
        .id;
    assert!(matches!(
        cloud.delete(ACCOUNT, &project),
        Err(CloudError::Busy(_))
    ));
    cloud.configure(ACCOUNT, &slow(1000));
    let copy = cloud
        .create(ACCOUNT, "i", image(&inside))
        .expect("created")
        .id;
    assert!(matches!(
        cloud.delete(ACCOUNT, &inside),
        Err(CloudError::Busy(_))
    ));
    clock.forward(1000);
    cloud.delete(ACCOUNT, &inside).expect("the copy is made");
    assert!(matches!(
        cloud.delete(ACCOUNT, &project),
        Err(CloudError::Busy(_))
    ));
    clock.forward(1000);
    cloud.delete(ACCOUNT, &project).expect("empty");
    let copy = cloud
        .get(ACCOUNT, &copy)
        .expect("an answer")
        .expect("there");
    assert_eq!(copy.size_mb, Some(1024));
    clock.forward(1000);
    assert_eq!(cloud.counts(), BTreeMap::from([(Kind::Image, 1)]));
}

#[test]
fn failures_come_at_their_rate() {
    let (cloud, _) = cloud();
    cloud.configure(ACCOUNT, &failing(&[Operation::Create], 0.25));
    let failed = (0..100)
        .filter(|n| cloud.create(ACCOUNT, &n.to_string(), volume(1)).is_err())
        .count();
    assert_eq!(failed, 25);
    assert_eq!(cloud.counts(), BTreeMap::from([(Kind::Volume, 75)]));
    cloud.configure(ACCOUNT, &failing(&[Operation::Observe], 1.0));
    assert_eq!(
        cloud.get(ACCOUNT, "vol-x"),
        Err(CloudError::Unavailable("out of order".into()))
    );
    cloud
        .create(ACCOUNT, "other", volume(1))
        .expect("only observing fails");
}

#[test]
fn a_lost_reply_leaves_what_was_done() {
    let (cloud, _) = cloud();
    let mut settings = failing(&[Operation::Create], 1.0);
    if let Some(failure) = &mut settings.failure {
        failure.reply_lost = true;
    }
    cloud.configure(ACCOUNT, &settings);
    assert!(cloud.create(ACCOUNT, "t", volume(1)).is_err());
    assert_eq!(cloud.counts(), BTreeMap::from([(Kind::Volume, 1)]));
    assert!(cloud.create(ACCOUNT, "t", volume(1)).is_err());
    assert_eq!(cloud.counts(), BTreeMap::from([(Kind::Volume, 1)]));
}

#[test]
fn volumes_drift_once_an_interval() {
    let (cloud, clock) = cloud();
    let id = cloud.create(ACCOUNT, "t", volume(5)).expect("created").id;
    cloud.configure(
        ACCOUNT,
        &Settings {
            drift: Some(Drift {
                interval_ms: 100,
                delta_gb: -1,
            }),
            ..Settings::default()
        },
    );
    let size = |cloud: &Cloud| {
        cloud
            .get(ACCOUNT, &id)
            .expect("an answer")
            .and_then(|o| o.size_gb)
    };
    assert_eq!(size(&cloud), Some(5));
    clock.forward(100);
    assert_eq!(size(&cloud), Some(4));
    assert_eq!(size(&cloud), Some(4));
    cloud.update(ACCOUNT, &id, volume(5)).expect("repaired");
    assert_eq!(size(&cloud), Some(5));
}

#[test]
fn an_image_of_a_volume_that_drifted_beyond_measure_is_no_panic() {
    let (cloud, clock) = cloud();
    let id = cloud.create(ACCOUNT, "t", volume(5)).expect("created").id;
    let drift = Some(Drift {
        interval_ms: 100,
        delta_gb: i64::MAX,
    });
    cloud.configure(
        ACCOUNT,
        &Settings {
            drift,
            ..Settings::default()
        },
    );
    clock.forward(100);
    let drifted = cloud.get(ACCOUNT, &id).expect("an answer").expect("there");
    assert_eq!(drifted.size_gb, Some(i64::MAX));
    let made = cloud.create(ACCOUNT, "i", image(&id)).expect("created");
    assert_eq!(made.size_mb, Some(i64::MAX));
}

#[test]
fn a_restart_finds_everything() {
    let dir = tempfile::tempdir().expect("a directory");
    let clock = Hand::default();
    let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
    cloud.configure(ACCOUNT, &slow(1000));
    let id = cloud.create(ACCOUNT, "t", volume(5)).expect("created").id;
    let gone = cloud.create(ACCOUNT, "g", volume(5)).expect("created").id;
    clock.forward(1000);
    cloud.delete(ACCOUNT, &gone).expect("deleted");
    clock.forward(500);
    assert!(
        matches!(
            Cloud::open(dir.path(), clock.now()),
            Err(OpenError::InUse(_))
        ),
        "one process at a time"
    );
    let before = cloud.list_all();
    drop(cloud);
    let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
    assert_eq!(cloud.list_all(), before);
    assert_eq!(
        cloud
            .create(ACCOUNT, "t", volume(5))
            .expect("known by its tag")
            .id,
        id
    );
    clock.forward(500);
    assert_eq!(state(&cloud, &gone), None);
}

#[test]
fn a_torn_last_line_is_dropped_and_other_damage_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let clock = Hand::default();
    let path = dir.path().join("cloud.jsonl");
    let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
    for n in 0..3 {
        cloud
            .create(ACCOUNT, &n.to_string(), volume(5))
            .expect("created");
    }
    drop(cloud);
    let whole = std::fs::read(&path).expect("a journal");
    for cut in 1..40 {
        std::fs::write(&path, &whole[..whole.len() - cut]).expect("written");
        let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
        assert_eq!(
            cloud.list_all().len(),
            3,
            "the torn line only settled a volume"
        );
        cloud.create(ACCOUNT, "after", volume(1)).expect("created");
        drop(cloud);
        let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
        assert_eq!(cloud.list_all().len(), 4);
    }
    let mut damaged = whole;
    damaged[10] = b'\n';
    std::fs::write(&path, damaged).expect("written");
    assert!(matches!(
        Cloud::open(dir.path(), clock.now()),
        Err(OpenError::Damaged(_, 1, _))
    ));
}

#[test]
fn the_journal_does_not_grow_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    let clock = Hand::default();
    let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
    let id = cloud.create(ACCOUNT, "t", volume(1)).expect("created").id;
    for size_gb in 2..6000 {
        cloud.update(ACCOUNT, &id, volume(size_gb)).expect("grown");
    }
    let text = std::fs::read_to_string(dir.path().join("cloud.jsonl")).expect("a journal");
    assert!(text.lines().count() < 2 * crate::limits::JOURNAL_DEAD_LINES_MAX);
    drop(cloud);
    let cloud = Cloud::open(dir.path(), clock.now()).expect("opened");
    assert_eq!(cloud.list_all()[0].size_gb, Some(5999));
}

#[test]
fn what_another_account_has_does_not_exist() {
    let (cloud, _) = cloud();
    let other = "ProviderConfig/ns/other";
    let id = cloud.create(ACCOUNT, "t", volume(5)).expect("created").id;
    let home = cloud.create(ACCOUNT, "p", project()).expect("created").id;
    assert_eq!(cloud.get(other, &id), Ok(None));
    assert_eq!(cloud.find(other, Kind::Volume, "t"), Ok(None));
    assert_eq!(
        cloud.update(other, &id, volume(6)),
        Err(CloudError::NotFound(format!("{id} does not exist")))
    );
    cloud.delete(other, &id).expect("nothing to delete");
    assert_eq!(
        cloud.create(other, "i", image(&id)),
        Err(CloudError::NotFound(format!("volume {id} does not exist")))
    );
    assert_eq!(
        cloud.create(other, "v", volume_in(&home)),
        Err(CloudError::NotFound(format!(
            "project {home} does not exist"
        )))
    );
    let same_tag = cloud.create(other, "t", volume(7)).expect("its own");
    assert_ne!(same_tag.id, id);
    let mine = cloud.get(ACCOUNT, &id).expect("an answer").expect("there");
    assert_eq!((mine.state, mine.size_gb), (State::Active, Some(5)));
}

#[test]
fn a_source_can_be_given_later_once() {
    let (cloud, _) = cloud();
    let empty = Spec::Image(ImageSpec {
        source_volume: None,
        ..ImageSpec::of(&image("vol-x")).expect("an image").clone()
    });
    let made = cloud.create(ACCOUNT, "i", empty.clone()).expect("created");
    assert_eq!((made.state, made.size_mb), (State::Active, None));
    let source = cloud.create(ACCOUNT, "v", volume(5)).expect("created").id;
    let filled = cloud.update(ACCOUNT, &made.id, image(&source));
    assert_eq!(filled.expect("filled").size_mb, Some(5 * 1024));
    assert_eq!(
        cloud.update(ACCOUNT, &made.id, empty),
        Err(CloudError::Refused(format!(
            "the source volume of image {} cannot be changed",
            made.id
        )))
    );
}

#[test]
fn journals_of_earlier_versions_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let lines = [
        r#"{"set":["ClusterProviderConfig/default",{"create_ms":5,"quota":{"volumes":null,"size_gb":null}}]}"#,
        r#"{"put":{"id":"prj-1","tag":"p","account":"ClusterProviderConfig/default","spec":{"project":{"location":"eu-1","display_name":"prod"}},"state":"active","since_ms":1,"drifted_ms":1}}"#,
        r#"{"put":{"id":"vt-1","tag":"vt","account":"ClusterProviderConfig/default","spec":{"volumeType":{"location":"eu-1","name":"fast","iops":100,"min_size_gb":1}},"state":"active","since_ms":1,"drifted_ms":1}}"#,
        r#"{"put":{"id":"vol-1","tag":"v","account":"ClusterProviderConfig/default","spec":{"volume":{"location":"eu-1","project":"prj-1","display_name":"data","size_gb":5,"volume_type":"fast","iops":null,"source_image":null}},"state":"active","since_ms":1,"size_gb":5,"drifted_ms":1}}"#,
        r#"{"put":{"id":"img-1","tag":"i","account":"ClusterProviderConfig/default","spec":{"image":{"location":"eu-1","display_name":"golden","source_volume":"vol-1","cpu_architecture":"amd64","boot":null,"initializer":null}},"state":"active","since_ms":1,"size_mb":5120,"drifted_ms":1}}"#,
    ];
    let text = lines.join("\n") + "\n";
    std::fs::write(dir.path().join("cloud.jsonl"), text).expect("written");
    let cloud = Cloud::open(dir.path(), Hand::default().now()).expect("opened");
    let get = |id: &str| cloud.get(ACCOUNT, id).expect("an answer").expect("there");
    let volume = VolumeSpec::of(&get("vol-1").spec)
        .expect("a volume")
        .clone();
    assert_eq!(volume.project.as_deref(), Some("prj-1"));
    assert_eq!((volume.size_gb, volume.volume_type.as_str()), (5, "fast"));
    assert_eq!(get("img-1").spec, image("vol-1"));
    assert!(matches!(
        cloud.delete(ACCOUNT, "prj-1"),
        Err(CloudError::Busy(_))
    ));
}
