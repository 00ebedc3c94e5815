//! The archive against a plain model of it: random scenarios of runs, reruns, races, removals, maintenance, other
//! programs, crashes and lost answers, on a store in memory.
//!
//! The model lists all rows with their batches, and for each committed batch the rows with which its run compared it.
//! After each step, a second reader ([`other_program`]) must find exactly the model's rows in the table.
//! A rerun of a batch must read exactly the rows that the batch was compared with, except those that were removed since.
//! Where another program left nothing that says which these are, it may refuse to, but must not read others.
//!
//! `DEDUP_JOB_MODEL_STEPS` is the number of steps (2000 by default), `DEDUP_JOB_MODEL_SEED` the seed of the first
//! scenario; the seed of each next scenario is one higher. A scenario that fails is shrunk, and printed with its seed.

#[path = "model/other_program.rs"]
mod other_program;
#[path = "model/step.rs"]
mod step;
#[path = "model/store.rs"]
mod store;
#[path = "model/world.rs"]
mod world;

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use step::{BATCHES, Batch, DAYS, INPUTS, Lie, Step};
use store::Fault;
use world::World;

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::None),
        2 => (0..60u64).prop_map(Fault::Crash),
        2 => (0..60u64).prop_map(Fault::CrashAfter),
        1 => (0..40u64).prop_map(Fault::LostAnswer),
    ]
}

/// A batch: mostly the one without a name.
fn batch() -> impl Strategy<Value = Batch> {
    let name = prop_oneof![3 => Just(None::<usize>), 1 => (0..BATCHES).prop_map(Some)];
    (0..DAYS, name)
}

fn step() -> impl Strategy<Value = Step> {
    let day = || 0..DAYS;
    let input = || 0..INPUTS;
    let lie = prop::sample::select(vec![Lie::Missing, Lie::Garbage, Lie::NoCheckpoint]);
    prop_oneof![
        6 => (batch(), input(), any::<bool>(), fault())
            .prop_map(|(batch, input, replace, fault)| Step::Run { batch, input, replace, fault }),
        2 => (day(), input(), fault())
            .prop_map(|(day, input, fault)| Step::Append { day, input, fault }),
        4 => batch().prop_map(|batch| Step::Rerun { batch }),
        1 => day().prop_map(|day| Step::RerunWithoutDay { day }),
        3 => (day(), input(), day(), input())
            .prop_map(|(one, a, other, b)| Step::Race { one: (one, a), other: (other, b) }),
        1 => (day(), fault()).prop_map(|(day, fault)| Step::RemoveDay { day, fault }),
        1 => (batch(), fault()).prop_map(|(batch, fault)| Step::RemoveBatch { batch, fault }),
        2 => (input(), fault()).prop_map(|(input, fault)| Step::RemoveIds { input, fault }),
        2 => fault().prop_map(|fault| Step::Compact { fault }),
        1 => Just(Step::RacingCompactions),
        1 => Just(Step::Vacuum),
        2 => day().prop_map(|day| Step::OtherOptimize { day }),
        1 => input().prop_map(|input| Step::OtherDelete { input }),
        1 => input().prop_map(|input| Step::OtherDeletesByVector { input }),
        1 => (prop::option::of(day()), input())
            .prop_map(|(day, input)| Step::OtherAppend { day, input }),
        1 => (day(), input(), prop::option::of(day()))
            .prop_map(|(day, input, to)| Step::RunWhileOtherAppends { day, input, to }),
        2 => (1..8usize).prop_map(|back| Step::OtherRestores { back }),
        1 => (day(), input()).prop_map(|(day, input)| Step::OtherOverwritesDay { day, input }),
        2 => Just(Step::OtherCheckpoints),
        1 => lie.prop_map(|lie| Step::LastCheckpointLies { lie }),
        1 => Just(Step::OtherCleansLog),
    ]
}

#[test]
fn scenarios_agree_with_the_model() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let steps: u64 = number("DEDUP_JOB_MODEL_STEPS").unwrap_or(2000);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("DEDUP_JOB_MODEL_SEED").unwrap_or(now.as_nanos() as u64 & 0xffff_ffff);
    print_line(&format!("the first scenario has the seed {seed}"));
    // When a process of a scenario dies, the Delta library's own threads panic, because their runtime is dropped. These
    // panics are not printed.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_library = panic
            .location()
            .is_some_and(|place| !place.file().contains("tests"));
        if !is_library {
            hook(panic);
        }
    }));
    let (taken, next) = (AtomicU64::new(0), AtomicU64::new(seed));
    let play_scenarios = || {
        while taken.load(Ordering::Relaxed) < steps {
            play_scenario(next.fetch_add(1, Ordering::Relaxed), &taken);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(play_scenarios)).collect();
        for thread in all {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    print_line(&format!(
        "{} steps in {} scenarios",
        taken.load(Ordering::Relaxed),
        next.load(Ordering::Relaxed) - seed
    ));
}

/// Prints a line even when the test passes: the harness captures only the output of the print macros.
fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Plays the scenario of a seed. One that fails is shrunk to the fewest steps that still fail.
fn play_scenario(seed: u64, taken: &AtomicU64) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let scenarios = prop::collection::vec(step(), 1..24);
    let played = runner.run(&scenarios, |steps| {
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in &steps {
                let done = world.step(step).await;
                done.map_err(|reason| TestCaseError::fail(format!("{step:?}: {reason}")))?;
                taken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(reason, steps)) => {
            panic!("seed {seed}: {reason}\nof the scenario {steps:#?}")
        }
        Err(error) => panic!("seed {seed}: {error}"),
    }
}
