//! Processes of a cluster die, freeze and come back at chosen moments. Each executor reaches the
//! storage through its own proxy, which tells the test what the executor reads. Fault numbers are
//! those of docs/faults.md.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use testkit::proxy::{Fault, Proxy, Request};

use crate::helpers::processes::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

/// An archive of many files on S3, a batch, and the expected output of its run.
struct Fixture {
    storage: Storage,
    at: String,
    expected: Vec<u8>,
}

impl Fixture {
    fn new() -> Option<Self> {
        let storage = seaweed()?;
        let at = storage.unique("cluster-faults");
        let data = "--new 500 --base 4000 --days 24 --seed 5";
        storage
            .dedup(&format!("generate pages --output {at} {data}"))
            .ok();
        let expected = storage.get(&format!("{at}/expected.parquet")).unwrap();
        storage.put(&format!("{at}/hits.parquet"), EARLIER_OUTPUT.into());
        Some(Self {
            storage,
            at,
            expected,
        })
    }

    fn line(&self, cluster: &TestCluster, extra: &str) -> String {
        format!(
            "run --new {at}/day.parquet --base {at}/archive --output {at}/hits.parquet --day 2026-01-31 \
             --scratch {at}/scratch --cluster {} --json {extra}",
            cluster.address(),
            at = self.at
        )
    }

    fn start(&self, cluster: &TestCluster, extra: &str) -> Child {
        self.storage
            .command()
            .args(self.line(cluster, extra).split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn output(&self) -> Vec<u8> {
        self.storage
            .get(&format!("{}/hits.parquet", self.at))
            .unwrap()
    }

    #[track_caller]
    fn is_done(&self, ran: Ran) -> serde_json::Value {
        let summary = ran.ok().json();
        assert!(self.output() == self.expected, "other hits");
        self.is_clean();
        summary
    }

    #[track_caller]
    fn is_untouched(&self) {
        assert_eq!(self.output(), EARLIER_OUTPUT);
        self.is_clean();
    }

    /// Asserts that the scratch prefix is empty.
    #[track_caller]
    fn is_clean(&self) {
        let left = self.storage.list(&format!("{}/scratch", self.at));
        assert_eq!(left, Vec::<String>::new());
    }
}

fn end(child: Child) -> Ran {
    without_secrets(Ran::of(child.wait_with_output().unwrap()))
}

/// Whether a request is for a data file of the archive.
fn is_data(request: &Request) -> bool {
    request.method == "GET" && request.path().contains("/archive/day")
}

/// Whether a request is for pages of the batch.
fn is_page(request: &Request) -> bool {
    request.method == "GET" && request.path().contains("/pages/")
}

/// Adds an executor whose proxy holds back the `at`th and later requests for data files until a
/// flag is set. Returns the proxy, a receiver that gets a message for each of these requests, and
/// the flag.
fn held(
    fixture: &Fixture,
    cluster: &mut TestCluster,
    at: u64,
) -> (Proxy, mpsc::Receiver<()>, Arc<AtomicBool>) {
    held_at(fixture, cluster, at, is_data)
}

/// As [`held`], for the requests that `chosen` selects.
fn held_at(
    fixture: &Fixture,
    cluster: &mut TestCluster,
    at: u64,
    chosen: fn(&Request) -> bool,
) -> (Proxy, mpsc::Receiver<()>, Arc<AtomicBool>) {
    let (told, reached) = mpsc::channel();
    let (seen, told) = (AtomicU64::new(0), std::sync::Mutex::new(told));
    let go = Arc::new(AtomicBool::new(false));
    let free = Arc::clone(&go);
    let (storage, proxy) = fixture.storage.through(move |request| {
        if chosen(request) && seen.fetch_add(1, Ordering::Relaxed) + 1 >= at {
            let _ = told.lock().unwrap().send(());
            while !free.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Fault::Pass
    });
    cluster.add(&storage.environment(), "");
    (proxy, reached, go)
}

/// Fault 29: one executor dies at its first slice, at a later one, or at its last; the other does
/// its work.
#[test]
fn an_executor_is_killed() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for at in [1, 6, 12] {
        let mut cluster = TestCluster::new();
        let (_proxy, reached, go) = held(&fixture, &mut cluster, at);
        cluster.add(&fixture.storage.environment(), "");
        let run = fixture.start(&cluster, "");
        // The other executor may be so fast that this one never gets that far.
        let was_there = reached.recv_timeout(Duration::from_secs(20)).is_ok();
        cluster.executors.remove(0).kill();
        go.store(true, Ordering::Relaxed);
        fixture.is_done(end(run));
        if was_there {
            cluster.scheduler.wait_for("an executor is lost");
        }
        assert!(was_there || at > 1);
    }
}

/// Fault 29: all executors die. If no other comes, the run ends with 69 after `--executor-wait`; if
/// one comes, it succeeds.
#[test]
fn all_executors_are_killed() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for comes_back in [false, true] {
        let mut cluster = TestCluster::new();
        let held: Vec<_> = (0..2).map(|_| held(&fixture, &mut cluster, 3)).collect();
        let run = fixture.start(&cluster, "--executor-wait 4s");
        for (_, reached, _) in &held {
            reached.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        for executor in cluster.executors.drain(..) {
            executor.kill();
        }
        for (_, _, go) in &held {
            go.store(true, Ordering::Relaxed);
        }
        if comes_back {
            cluster.add(&fixture.storage.environment(), "");
            fixture.is_done(end(run));
        } else {
            end(run).fails(69, &["no executor has been there"]);
            fixture.is_untouched();
        }
    }
}

/// Fault 30: an executor freezes and others do its work; when it thaws it finishes its own, so a
/// task is done twice.
#[test]
fn an_executor_freezes_and_thaws() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let mut cluster = TestCluster::new();
    let (_first, first_reached, first_goes) = held(&fixture, &mut cluster, 1);
    let (_second, second_reached, second_goes) = held(&fixture, &mut cluster, 1);
    let run = fixture.start(&cluster, "");
    first_reached.recv_timeout(Duration::from_secs(30)).unwrap();
    second_reached
        .recv_timeout(Duration::from_secs(30))
        .unwrap();
    cluster.executors[0].signal("STOP");
    first_goes.store(true, Ordering::Relaxed);
    cluster.scheduler.wait_for("an executor is lost");
    // The frozen executor thaws while the job runs, and finishes a task that another executor was
    // given, too.
    cluster.executors[0].signal("CONT");
    std::thread::sleep(Duration::from_secs(1));
    second_goes.store(true, Ordering::Relaxed);
    fixture.is_done(end(run));

    // An executor is frozen until the job ends, and thaws during the next job.
    let mut cluster = TestCluster::new();
    let (_first, reached, go) = held(&fixture, &mut cluster, 2);
    cluster.add(&fixture.storage.environment(), "");
    let run = fixture.start(&cluster, "");
    reached.recv_timeout(Duration::from_secs(30)).unwrap();
    cluster.executors[0].signal("STOP");
    go.store(true, Ordering::Relaxed);
    fixture.is_done(end(run));
    let run = fixture.start(&cluster, "");
    cluster.executors[0].signal("CONT");
    fixture.is_done(end(run));
}

/// A data file is damaged: the job fails at once, and its message names the file as a run in one
/// process does.
#[test]
fn a_damaged_file() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let files = fixture.storage.list(&format!("{}/archive", fixture.at));
    let file = files
        .iter()
        .find(|file| file.contains("day=2026-01-20"))
        .unwrap();
    let mut bytes = fixture.storage.get(file).unwrap();
    bytes[200] ^= 1;
    fixture.storage.put(file, bytes);
    let cluster = TestCluster::of(2, &fixture.storage.environment(), "");
    let name = file.rsplit('/').next().unwrap();
    let there = end(fixture.start(&cluster, ""));
    let alone = format!(
        "run --new {at}/day.parquet --base {at}/archive --output {at}/hits.parquet --day 2026-01-31",
        at = fixture.at
    );
    let here = fixture.storage.dedup(&alone);
    assert_eq!(here.stderr, there.stderr);
    there.fails(65, &[name, "row group 0"]);
    here.fails(65, &[name]);
    fixture.is_untouched();
}

/// The batch has an invalid document: the map that makes fingerprints fails.
#[test]
fn a_damaged_day() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 30 --base 100"
    ))
    .ok();
    fs::create_dir(dir.join("day")).unwrap();
    fs::copy(dir.join("data/day.parquet"), dir.join("day/a.parquet")).unwrap();
    fs::write(
        dir.join("day/b.jsonl"),
        "{\"id\": \"x\", \"text\": \"y\"}\n{\"id\": 7",
    )
    .unwrap();
    let cluster = TestCluster::of(1, &BTreeMap::new(), "");
    let line = format!(
        "run --new {}/ --base {data}/archive --output {}",
        dir.at("day"),
        dir.at("h.parquet")
    );
    let here = dedup(&line);
    let there = dedup(&format!("{line} --cluster {}", cluster.address()));
    assert_eq!(here.stderr, there.stderr);
    there.fails(65, &["b.jsonl"]);
    assert!(!dir.join("h.parquet").exists());
}

/// An executor repeats requests while storage fails temporarily; storage that stays unreachable
/// ends the job.
#[test]
fn storage_fails_an_executor() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let refused = |limit: u64| {
        let seen = AtomicU64::new(0);
        move |request: &Request| match is_data(request)
            && seen.fetch_add(1, Ordering::Relaxed) < limit
        {
            true => Fault::Status {
                code: 503,
                body: "<Error><Code>SlowDown</Code></Error>".into(),
            },
            false => Fault::Pass,
        }
    };
    let mut cluster = TestCluster::new();
    let (storage, _proxy) = fixture.storage.through(refused(10));
    cluster.add(&storage.environment(), "");
    fixture.is_done(end(fixture.start(&cluster, "")));
    fixture.storage.put(
        &format!("{}/hits.parquet", fixture.at),
        EARLIER_OUTPUT.into(),
    );

    // An executor gives up after --retry-deadline. The scheduler assigns the task four times in
    // all.
    let mut cluster = TestCluster::new();
    let (storage, proxy) = fixture.storage.through(refused(u64::MAX));
    cluster.add(&storage.environment(), "--retry-deadline 1s");
    let ran = end(fixture.start(&cluster, ""));
    ran.fails(69, &["s3://", "archive/day"]);
    fixture.is_untouched();
    drop(proxy);
}

/// Fault 30: the scheduler dies and the run ends with 75; a rerun with another succeeds. With
/// `--resubmit` the run waits for the next scheduler.
#[test]
fn the_scheduler_is_killed() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for resubmits in [false, true] {
        let mut cluster = TestCluster::new();
        let (_proxy, reached, go) = held(&fixture, &mut cluster, 3);
        let extra = if resubmits { "--resubmit 1" } else { "" };
        let run = fixture.start(&cluster, extra);
        reached.recv_timeout(Duration::from_secs(30)).unwrap();
        let address = cluster.address().replace("df://", "");
        let executors = std::mem::take(&mut cluster.executors);
        cluster.scheduler.kill();
        if !resubmits {
            let ran = end(run);
            ran.fails(75, &["the scheduler is lost", "run the same command again"]);
        } else {
            go.store(true, Ordering::Relaxed);
            // The executor waits for a scheduler, and registers with the new one.
            executors[0].wait_for("the scheduler does not answer");
            let _again = TestCluster::at(&address, "");
            fixture.is_done(end(run));
            executors[0].wait_for("the scheduler is back");
            continue;
        }
        // The files that the run put into the store are gone as well.
        fixture.is_untouched();
        go.store(true, Ordering::Relaxed);
        let mut again = TestCluster::at(&address, "");
        again.executors = executors;
        fixture.is_done(end(fixture.start(&again, "")));
        fixture.storage.put(
            &format!("{}/hits.parquet", fixture.at),
            EARLIER_OUTPUT.into(),
        );
    }
}

/// The client is interrupted: the cluster cancels its job, and starts the next job at once.
#[test]
fn the_client_is_interrupted() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for name in ["INT", "TERM"] {
        let mut cluster = TestCluster::new();
        let (_proxy, reached, go) = held(&fixture, &mut cluster, 2);
        let run = fixture.start(&cluster, "");
        reached.recv_timeout(Duration::from_secs(30)).unwrap();
        signal(&run, name);
        let ran = end(run);
        let code = if name == "INT" { 130 } else { 143 };
        ran.fails(code, &["stopped by", "as they were"]);
        fixture.is_untouched();
        go.store(true, Ordering::Relaxed);
        let summary = fixture.is_done(end(fixture.start(&cluster, "")));
        assert_eq!(summary["cluster"]["slices_again"], 0);
        cluster.scheduler.wait_for("a job is cancelled");
        fixture.storage.put(
            &format!("{}/hits.parquet", fixture.at),
            EARLIER_OUTPUT.into(),
        );
    }
}

/// An executor dies, or freezes, while it fingerprints documents: each document is counted once.
#[test]
fn the_first_map() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let dir = Dir::new();
    let day = dir.at("day.parquet");
    let at = &fixture.at;
    fs::write(
        &day,
        fixture.storage.get(&format!("{at}/day.parquet")).unwrap(),
    )
    .unwrap();
    let rows = read_parquet(&day);
    let column = |of: usize| -> Vec<String> {
        rows.iter()
            .flat_map(|batch| texts(batch.column(of)))
            .collect()
    };
    for (number, part) in (0..500).collect::<Vec<_>>().chunks(25).enumerate() {
        let of = |column: &[String]| strings(&column[part[0]..part[0] + part.len()]);
        write_parquet_in_groups(
            &day,
            vec![("id", of(&column(0))), ("text", of(&column(1)))],
            10,
        );
        fixture
            .storage
            .upload(&day, &format!("{at}/pages/{number:02}.parquet"));
    }
    let pages = fixture
        .line(&TestCluster::new(), "")
        .replace("day.parquet", "pages/");
    let alone: Vec<&str> = pages.split(" --scratch").take(1).collect();
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    fixture
        .storage
        .dedup(&format!("{} --fingerprints {here}", alone[0]))
        .ok();
    for (signal, when) in [("KILL", 1), ("KILL", 8), ("STOP", 3)] {
        let mut cluster = TestCluster::new();
        let (_proxy, reached, go) = held_at(&fixture, &mut cluster, when, is_page);
        cluster.add(&fixture.storage.environment(), "");
        let line = fixture.line(&cluster, &format!("--fingerprints {there}"));
        let run = fixture
            .storage
            .command()
            .args(line.replace("day.parquet", "pages/").split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The other executor may be so fast that this one never gets that far.
        let _ = reached.recv_timeout(Duration::from_secs(10));
        cluster.executors[0].signal(signal);
        go.store(true, Ordering::Relaxed);
        if signal == "STOP" {
            cluster.scheduler.wait_for("an executor is lost");
            cluster.executors[0].signal("CONT");
        }
        let summary = fixture.is_done(end(run));
        assert_eq!(summary["new"]["documents"], 500);
        assert!(fs::read(&there).unwrap() == fs::read(&here).unwrap());
    }
}

/// An executor dies after it answered: its answers are computed again.
#[test]
fn an_executor_dies_with_its_answers() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let mut cluster = TestCluster::new();
    let (_proxy, reached, go) = held(&fixture, &mut cluster, 2);
    cluster.add(&fixture.storage.environment(), "");
    let run = fixture.start(&cluster, "");
    reached.recv_timeout(Duration::from_secs(30)).unwrap();
    // By now the other executor has done the rest, or will soon.
    std::thread::sleep(Duration::from_secs(2));
    cluster.executors.remove(1).kill();
    go.store(true, Ordering::Relaxed);
    let summary = fixture.is_done(end(run));
    let executors = summary["cluster"]["executors"].as_array().unwrap();
    // The dead executor may have made fingerprints, but every pair comes from the other.
    let probed = executors
        .iter()
        .filter(|of| of["probed"].as_u64() > Some(0));
    assert_eq!(probed.count(), 1, "{executors:?}");
}

/// In each of ten runs, a random executor dies at a random moment, and another takes its place.
#[test]
fn ten_runs_and_ten_deaths() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let mut cluster = TestCluster::of(3, &fixture.storage.environment(), "");
    let mut random = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .subsec_nanos()
        | 1;
    for number in 0..10 {
        let run = fixture.start(&cluster, "");
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_millis(u64::from(random >> 8) % 700));
        let which = (random >> 4) as usize % 3;
        cluster.executors.remove(which).kill();
        say(&format!("run {number}: executor {which} died"));
        let summary = fixture.is_done(end(run));
        assert!(summary["cluster"]["slices"].as_u64().unwrap() > 1);
        cluster.add(&fixture.storage.environment(), "");
    }
}
