//! Builds of an index against a plain model of its archive: random steps of commits, removals and compactions, merges
//! among them. After each build, every answer must equal brute force over the model's rows.

#[path = "builds/world.rs"]
mod world;

use archive::Append;
use lookup::{Index, MAX_DISTANCE};
use proptest::prelude::*;

use world::{Days, Row, Shape, World};

/// Number of days in a scenario.
const DAYS: usize = 8;

/// A step of a scenario.
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
