//! Builds of an index against a plain model of its archive: random steps of commits, removals and compactions, merges
//! among them. After each build, every answer must equal brute force over the model's rows.

#[path = "builds/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::Append;
use lookup::{Index, LookupError, MAX_DISTANCE};
use proptest::prelude::*;
use storage::ErrorKind;
use tokio::runtime::Handle;

use world::{Days, Row, Shape, World};

/// Number of days in a scenario.
const DAYS: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    /// Commits a day, in files of at most `file_rows` rows. Replaces the day if it is there.
    Commit {
        day: usize,
        rows: Vec<Row>,
        file_rows: u64,
    },
    RemoveDay {
        day: usize,
    },
    RemoveIds {
        numbers: Vec<u16>,
    },
    Compact,
    Build {
        merge_all: bool,
    },
}

/// A fingerprint near one of five centres, so that many are within k bits of each other, and some are equal.
fn clustered() -> impl Strategy<Value = u64> {
    let near = (0_u64..5, prop::collection::vec(0_u32..64, 0..7));
    prop_oneof![
        9 => near.prop_map(|(centre, flips)| {
            let centre = centre.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            flips.iter().fold(centre, |value, bit| value ^ (1 << bit))
        }),
        1 => any::<u64>(),
    ]
}

/// The rows of a day. Ids repeat, within a day and across days.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = || (0_u16..100, clustered());
    prop_oneof![
        9 => prop::collection::vec(row(), 0..=40),
        // Enough for several blocks, and for more small files than a part has.
        1 => prop::collection::vec(row(), 200..=600),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let file_rows = prop::sample::select(vec![7_u64, 1 << 20]);
    prop_oneof![
        6 => (0..DAYS, rows(), file_rows)
            .prop_map(|(day, rows, file_rows)| Step::Commit { day, rows, file_rows }),
        1 => (0..DAYS).prop_map(|day| Step::RemoveDay { day }),
        2 => prop::collection::vec(0_u16..100, 1..10)
            .prop_map(|numbers| Step::RemoveIds { numbers }),
        1 => Just(Step::Compact),
        5 => prop::bool::weighted(0.25).prop_map(|merge_all| Step::Build { merge_all }),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let choices = (any::<bool>(), any::<bool>(), any::<bool>());
    choices.prop_map(|(bigint, sketches, in_store)| Shape {
        bigint,
        sketches,
        in_store,
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Compares all answers of an index with brute force over the model.
fn compare(
    world: &World,
    index: &Index,
    days: &Days,
    queries: &[u64],
) -> Result<(), TestCaseError> {
    for k in 0..=MAX_DISTANCE {
        let (found, expected) = (
            world.hits(index, queries, k),
            world.expected(days, queries, k),
        );
        prop_assert_eq!(found, expected, "k = {}", k);
    }
    Ok(())
}

/// Takes the steps and one last build. After each build, compares the answers of three readers with the model: of one that
/// opens the index, of one that follows it as a server does, and of one that still has the version before open.
async fn play(steps: &[Step], queries: &[u64], shape: Shape) -> Result<(), TestCaseError> {
    let world = World::new(shape).await;
    let mut days = Days::new();
    let mut before: Option<(Index, Days)> = None;
    let last = Step::Build { merge_all: false };
    for step in steps.iter().chain([&last]) {
        match step {
            Step::Commit {
                day,
                rows,
                file_rows,
            } => {
                // Rows that were removed by id do not come back with the same day.
                if world.commit(*day, rows, *file_rows).await != Append::AlreadyThere {
                    days.insert(*day, rows.clone());
                }
            }
            Step::RemoveDay { day } => {
                world.remove_day(*day).await;
                days.remove(day);
            }
            Step::RemoveIds { numbers } => {
                world.remove_ids(numbers).await;
                for rows in days.values_mut() {
                    rows.retain(|row| !numbers.contains(&row.0));
                }
            }
            Step::Compact => world.compact().await,
            Step::Build { merge_all } => {
                let built = world.build(*merge_all).await.unwrap();
                let rows: usize = days.values().map(Vec::len).sum();
                prop_assert_eq!(built.rows, rows as u64);
                prop_assert!(!merge_all || built.segments <= 1, "{:?}", built);
                let files = world.files();
                let opened = Index::open(&files).await.unwrap();
                opened.verify().unwrap();
                compare(&world, &opened, &days, queries)?;
                let followed = match &before {
                    None => opened,
                    Some((index, old_days)) => {
                        let newer = index.newer(&files).await.unwrap();
                        compare(&world, index, old_days, queries)?;
                        newer.unwrap_or_else(|| index.clone())
                    }
                };
                prop_assert_eq!(followed.version(), built.version);
                compare(&world, &followed, &days, queries)?;
                before = Some((followed, days.clone()));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_equals_brute_force_after_any_steps(
        steps in prop::collection::vec(step(), 1..20),
        queries in prop::collection::vec(clustered(), 1..20),
        shape in shape(),
    ) {
        runtime().block_on(play(&steps, &queries, shape))?;
    }
}

/// A fingerprint that is far from those of all other numbers.
fn far(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The rows of a day: far from each other, and each near a row of every other day.
fn day(day: usize, count: u64) -> Vec<Row> {
    let row = |number: u64| ((number % 60_000) as u16, far(number) ^ 1 << day);
    (0..count).map(row).collect()
}

/// Builds, and as soon as the build has written its first segment, lets `others` other builds each add a day. The build
/// must say that others came first, and the next one must complete the index.
async fn build_while_others_build(world: World, mut days: Days, others: usize) {
    let world = Arc::new(world);
    let first = days.keys().next_back().map_or(0, |last| last + 1);
    let (other, runtime, begun) = (
        Arc::clone(&world),
        Handle::current(),
        AtomicBool::new(false),
    );
    let interrupt = move |_| {
        if begun.swap(true, Ordering::Relaxed) {
            return;
        }
        runtime.block_on(async {
            for number in first..first + others {
                other.commit(number, &day(number, 20), 100).await;
                other.build(false).await.unwrap();
            }
        });
    };
    match world.build_while(false, interrupt).await {
        Err(LookupError::Overtaken { .. }) => {}
        built => panic!("after {others} other builds: {built:?}"),
    }
    days.extend((first..first + others).map(|number| (number, day(number, 20))));
    world.build(false).await.unwrap();
    let index = Index::open(&world.files()).await.unwrap();
    index.verify().unwrap();
    let queries: Vec<u64> = (0..30).map(far).collect();
    compare(&world, &index, &days, &queries).unwrap();
}

#[test]
fn a_build_that_others_overtake_says_so() {
    for in_store in [false, true] {
        let shape = Shape {
            bigint: true,
            sketches: false,
            in_store,
        };
        for is_first in [false, true] {
            // After two or three others, the manifest of the version that this build would publish is gone again.
            for others in 1..=3 {
                runtime().block_on(async {
                    let (world, mut days) = (World::new(shape).await, Days::new());
                    for number in 0..2 {
                        if number == 1 && !is_first {
                            world.build(false).await.unwrap();
                        }
                        days.insert(number, day(number, 20));
                        world.commit(number, &days[&number], 100).await;
                    }
                    build_while_others_build(world, days, others).await;
                });
            }
        }
    }
}

#[test]
fn a_build_whose_segments_others_removed_says_so() {
    for in_store in [false, true] {
        let shape = Shape {
            bigint: true,
            sketches: false,
            in_store,
        };
        runtime().block_on(async {
            let (world, mut days) = (World::new(shape).await, Days::new());
            // Two segments of four days each, which are of different tiers, so that they are not merged with each other.
            for (numbers, rows) in [(0..4, 70_000), (4..8, 20)] {
                for number in numbers {
                    days.insert(number, day(number, rows));
                    world.commit(number, &days[&number], 1 << 20).await;
                }
                world.build(false).await.unwrap();
            }
            let index = Index::open(&world.files()).await.unwrap();
            assert_eq!(index.info().segments.len(), 2);
            // Both must be written again. When the build comes to the second one, the others have removed it.
            for number in [0, 4] {
                world.remove_day(number).await;
                days.remove(&number);
            }
            build_while_others_build(world, days, 2).await;
        });
    }
}

/// Every byte of every file of an index, with one bit flipped: the answer is right, or an error of bad data; in the manifest, of
/// another format or archive, too.
#[test]
fn a_flipped_bit_gives_the_right_answer_or_an_error() {
    let shape = Shape {
        bigint: false,
        sketches: true,
        in_store: false,
    };
    runtime().block_on(async {
        let (world, mut days) = (World::new(shape).await, Days::new());
        for number in 0..2 {
            days.insert(number, day(number, 12));
            world.commit(number, &days[&number], 100).await;
            world.build(false).await.unwrap();
        }
        let queries: Vec<u64> = (0..12).map(far).collect();
        let expected = world.expected(&days, &queries, 3);
        let (mut files, mut refused) = (0, 0);
        for entry in std::fs::read_dir(world.index_directory()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            files += 1;
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                std::fs::write(&path, &flipped).unwrap();
                let answer = match Index::open(&world.files()).await {
                    Ok(index) => world.try_hits(&index, &queries, 3),
                    Err(error) => Err(error),
                };
                let name = format!("{}, byte {at}", path.display());
                match answer {
                    Ok(hits) => assert_eq!(hits, expected, "{name}"),
                    Err(error) => {
                        refused += 1;
                        let kind = error.kind();
                        assert!(kind == ErrorKind::Data, "{name}: {kind:?}: {error}");
                    }
                }
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(files >= 3 && refused > 100, "{files} files, {refused}");
    });
}
