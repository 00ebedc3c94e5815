//! Faults of storage, as the real client meets them: a proxy in front of a real server misbehaves.
//! Fault numbers are those of docs/faults.md.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testkit::proxy::{Fault, Request};

use crate::helpers::servers::*;
use crate::helpers::support::*;

/// An archive of two days on S3, a third day, and the expected output of its run.
struct Fixture {
    storage: Storage,
    /// The URL of the prefix with all files.
    at: String,
    expected: Vec<u8>,
    log: Vec<(String, Vec<u8>)>,
}

impl Fixture {
    fn new() -> Option<Self> {
        Self::of(4000)
    }

    /// With an archive of `documents`.
    fn of(documents: u32) -> Option<Self> {
        let storage = seaweed()?;
        let at = storage.unique("faults");
        let data = format!("--new 500 --base {documents} --days 2 --seed 5");
        storage.dedup_ok(&format!("generate pages --output {at} {data}"));
        let expected = storage.get(&format!("{at}/expected.parquet")).unwrap();
        storage.put(&format!("{at}/hits.parquet"), EARLIER_OUTPUT.into());
        let log = storage.log(&format!("{at}/archive"));
        assert_eq!(log.len(), 3);
        Some(Self {
            storage,
            at,
            expected,
            log,
        })
    }

    /// The command line of the run, with short timeouts and `extra` options.
    fn line(&self, extra: &str) -> String {
        format!(
            "run --new {at}/day.parquet --base {at}/archive --output {at}/hits.parquet --append --day 2026-01-31 \
             --json --retry-deadline 4s --request-timeout 2s {extra}",
            at = self.at
        )
    }

    /// Runs through a proxy that asks `decide` what to do with each request.
    fn run(&self, decide: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Ran {
        let (storage, _proxy) = self.storage.through(decide);
        storage.dedup(&self.line(""))
    }

    /// Asserts that neither the archive's log nor the output has changed.
    #[track_caller]
    fn is_untouched(&self) {
        assert!(self.storage.log(&format!("{}/archive", self.at)) == self.log);
        let output = self.storage.get(&format!("{}/hits.parquet", self.at));
        assert_eq!(output.unwrap(), EARLIER_OUTPUT);
    }

    /// Asserts that the day is committed once, and its output is in place.
    #[track_caller]
    fn is_done(&self, ran: Ran) -> serde_json::Value {
        let summary = ran.ok().json();
        assert_eq!(summary["archive_version_after"], 3);
        let log = self.storage.log(&format!("{}/archive", self.at));
        assert_eq!(
            log.len(),
            4,
            "{:?}",
            log.iter().map(|l| &l.0).collect::<Vec<_>>()
        );
        assert!(log[..3] == self.log[..]);
        assert!(
            self.storage
                .get(&format!("{}/hits.parquet", self.at))
                .unwrap()
                == self.expected
        );
        let info = self
            .storage
            .dedup(&format!("archive info {}/archive --verify", self.at));
        info.ok();
        summary
    }

    /// Asserts that a rerun without faults succeeds.
    #[track_caller]
    fn rerun(&self) {
        self.is_done(self.storage.dedup(&self.line("")));
    }
}

/// The request's path, with `%3D` decoded.
fn path(request: &Request) -> String {
    request.path().replace("%3D", "=")
}

fn is_put(request: &Request, part: &str) -> bool {
    request.method == "PUT" && path(request).contains(part)
}

fn is_get(request: &Request, part: &str) -> bool {
    request.method == "GET" && path(request).contains(part)
}

const ENTRY: &str = "_delta_log/00000000000000000003.json";

/// A condition that holds for the first `limit` calls.
fn times(limit: u64) -> impl Fn() -> bool + Send + Sync {
    let seen = AtomicU64::new(0);
    move || seen.fetch_add(1, Ordering::Relaxed) < limit
}

/// Fault 4: the log entry is stored, but its answer is lost.
#[test]
fn a_lost_answer_to_the_commit() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let first = times(1);
    let ran = fixture.run(move |request| {
        if is_put(request, ENTRY) && first() {
            Fault::LoseResponse
        } else {
            Fault::Pass
        }
    });
    assert_eq!(fixture.is_done(ran)["commit"]["committed"], 3);
}

/// Fault 5: the server answers 500 after it stored the entry; the repeated request conflicts with
/// the first.
#[test]
fn an_error_after_the_commit() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let first = times(1);
    let ran = fixture.run(move |request| {
        if is_put(request, ENTRY) && first() {
            Fault::StatusAfter {
                code: 500,
                body: "<Error><Code>InternalError</Code><Message>We failed</Message></Error>"
                    .into(),
            }
        } else {
            Fault::Pass
        }
    });
    let summary = fixture.is_done(ran);
    assert_eq!(summary["commit"]["committed"], 3);
    assert!(summary["network"]["retries"].as_u64().unwrap() > 0);
}

/// Fault 6: the server reports a conflict, but no other writer committed.
#[test]
fn a_conflict_though_the_key_is_absent() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let first = times(2);
    let ran = fixture.run(move |request| {
        if is_put(request, ENTRY) && first() {
            Fault::Status {
            code: 409,
            body:
                "<Error><Code>ConditionalRequestConflict</Code><Message>Try again</Message></Error>"
                    .into(),
        }
        } else {
            Fault::Pass
        }
    });
    fixture.is_done(ran);
}

/// A data file is removed while a run reads it, as a vacuum that does not wait would do: whichever request finds it gone, the error
/// names it, and nothing is committed.
#[test]
fn a_data_file_that_is_removed_meanwhile() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let mut names = HashSet::new();
    for from in 0.. {
        let gone: Arc<Mutex<Option<String>>> = Arc::default();
        let (removed, seen) = (Arc::clone(&gone), AtomicU64::new(0));
        let ran = fixture.run(move |request| {
            if !is_get(request, "/archive/day=") {
                return Fault::Pass;
            }
            let mut removed = removed.lock().unwrap();
            if removed.is_none() && seen.fetch_add(1, Ordering::Relaxed) == from {
                *removed = Some(path(request));
            }
            if *removed == Some(path(request)) {
                Fault::Status {
                    code: 404,
                    body: "<Error><Code>NoSuchKey</Code><Message>No such key</Message></Error>"
                        .into(),
                }
            } else {
                Fault::Pass
            }
        });
        let Some(gone) = gone.lock().unwrap().take() else {
            fixture.is_done(ran);
            break;
        };
        let (_, name) = gone.rsplit_once('/').unwrap();
        // The file of the new day is not in the log yet: another run writes it again.
        let code = if gone.contains("day=2026-01-31") {
            75
        } else {
            65
        };
        ran.fails(code, &[name]);
        fixture.is_untouched();
        names.insert(name.to_owned());
    }
    // Each of the three days has a file; the names of the new one differ from run to run.
    assert!(names.len() >= 3, "{names:?}");
}

/// The outcome of a commit is unknown: the run removes no file that the log may name.
#[test]
fn a_commit_that_hangs_for_ever() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let ran = fixture.run(|request| {
        if request.path().contains(ENTRY) && request.method != "HEAD" {
            Fault::Hang
        } else {
            Fault::Pass
        }
    });
    ran.fails(69, &["archive"]);
    fixture.is_untouched();
    let files = fixture
        .storage
        .list(&format!("{}/archive/day=2026-01-31", fixture.at));
    assert_eq!(files.len(), 1);
    fixture.rerun();
}

/// A store that keeps a part of a record, and answers that all is well: it is noticed before the log entry that points to the record.
#[test]
fn a_record_of_which_the_store_keeps_a_part() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let ran = fixture.run(|request| {
        if request.method == "HEAD" && path(request).contains("_dedup-job/days/") {
            // The answer says how long it would be.
            Fault::Status {
                code: 200,
                body: "part".into(),
            }
        } else {
            Fault::Pass
        }
    });
    ran.fails(69, &["_dedup-job/days/", "kept 4 of the"]);
    fixture.is_untouched();
    fixture.rerun();
}

/// Fault 11: a burst of 503 SlowDown.
#[test]
fn a_burst_of_slow_down() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let seen = Mutex::new(HashSet::new());
    let ran = fixture.run(move |request| {
        let key = (
            request.method.clone(),
            request.target.clone(),
            request.range.clone(),
        );
        if seen.lock().unwrap().insert(key) {
            Fault::Status {
                code: 503,
                body: "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"
                    .into(),
            }
        } else {
            Fault::Pass
        }
    });
    let summary = fixture.is_done(ran);
    assert!(summary["network"]["retries"].as_u64().unwrap() > 10);
}

/// Faults 12 and 14: the server answers 503 for ever, or never answers: to all requests, or to all
/// of one kind.
#[test]
fn a_server_that_does_not_recover() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let slow_down = || Fault::Status {
        code: 503,
        body: "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>".into(),
    };
    let fails = |code: &str, decide: Box<dyn Fn(&Request) -> Fault + Send + Sync>| {
        let begin = Instant::now();
        fixture.run(decide).fails(69, &["s3://", code]);
        // 12 s and a margin. Retries begin until the deadline of 4 s, and the last one takes 2 s:
        // 6 s for the request, and 6 s to find out what became of it.
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(30), "{took:?}");
        fixture.is_untouched();
    };
    fails("SlowDown", Box::new(move |_| slow_down()));
    fails("", Box::new(|_| Fault::Hang));
    for (method, part) in [
        ("GET", "/day.parquet"),
        ("GET", "archive/day="),
        ("GET", "_delta_log/"),
        ("PUT", "archive/day="),
        ("PUT", "_dedup-job/"),
        ("POST", "/hits.parquet"),
        ("PUT", "/hits.parquet"),
    ] {
        let is_meant =
            move |request: &Request| request.method == method && path(request).contains(part);
        let slow = move |request: &Request| {
            if is_meant(request) {
                slow_down()
            } else {
                Fault::Pass
            }
        };
        fails("SlowDown", Box::new(slow));
        let hang = move |request: &Request| {
            if is_meant(request) {
                Fault::Hang
            } else {
                Fault::Pass
            }
        };
        fails("", Box::new(hang));
    }
    fixture.rerun();
}

/// A data file is uploaded in parts. Two answers to its begin are cut off: it is begun again. The answer to its completion is lost: the
/// run finds that the file is there.
#[test]
fn a_lost_answer_to_a_large_upload() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("large"));
    let local = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {local} --new 1800000 --base 1000 --pairs 10"
    ));
    storage.dedup_ok(&format!("archive create --profile paper {at}/archive"));
    let completed = Arc::new(AtomicU64::new(0));
    let (first, seen) = (times(1), Arc::clone(&completed));
    let (broken, short) = (times(1), times(1));
    let (lossy, _proxy) = storage.through(move |request| {
        let begins = request.method == "POST" && request.target.contains("?uploads");
        if begins && broken() {
            return Fault::CutBody(60);
        }
        if begins && short() {
            return Fault::ShortBody(60);
        }
        let completes = request.method == "POST"
            && path(request).contains("/day=")
            && request.target.contains("uploadId");
        seen.fetch_add(u64::from(completes), Ordering::Relaxed);
        if completes && first() {
            Fault::LoseResponse
        } else {
            Fault::Pass
        }
    });
    lossy.dedup_ok(&format!(
        "fingerprint --input {local}/day.parquet --append {at}/archive --day 2026-01-01"
    ));
    assert!(completed.load(Ordering::Relaxed) >= 1);
    let info = storage.dedup(&format!("archive info {at}/archive --verify --json"));
    assert_eq!(info.ok().json()["fingerprints"], 1_800_000);
}

/// Faults 2 and 3 at exact moments: the run is killed while it sends the log entry, or after the
/// server stored the entry but before it answered.
#[test]
fn killed_around_the_log_entry() {
    for stored in [false, true] {
        let Some(fixture) = Fixture::new() else {
            return;
        };
        let reached = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&reached);
        let (storage, _proxy) = fixture.storage.through(move |request| {
            if seen.load(Ordering::Relaxed) {
                return Fault::Hang;
            }
            if !is_put(request, ENTRY) {
                return Fault::Pass;
            }
            seen.store(true, Ordering::Relaxed);
            if stored {
                // The server stores the entry, and answers no later request.
                Fault::StatusAfter {
                    code: 500,
                    body: String::new(),
                }
            } else {
                Fault::Hang
            }
        });
        let line = fixture.line("").replace("4s", "60s");
        let mut child = start_unheard(storage.command(), &line);
        let begin = Instant::now();
        while !reached.load(Ordering::Relaxed) {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        let entries = fixture
            .storage
            .log(&format!("{}/archive", fixture.at))
            .len();
        assert_eq!(entries, if stored { 4 } else { 3 });
        let output = fixture.storage.get(&format!("{}/hits.parquet", fixture.at));
        assert_eq!(output.unwrap(), EARLIER_OUTPUT);
        let summary = fixture.is_done(fixture.storage.dedup(&fixture.line("")));
        if stored {
            assert_eq!(summary["commit"], "already_there")
        } else {
            assert_eq!(summary["commit"]["committed"], 3)
        }
    }
}

/// Fault 13: connections break in the middle of a body, every time or every other time.
#[test]
fn bodies_that_break_off() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let ran = fixture.run(|request| {
        if is_get(request, "archive/day=") {
            Fault::CutBody(100)
        } else {
            Fault::Pass
        }
    });
    ran.fails(69, &["archive/day=2026-01-"]);
    fixture.is_untouched();
    // Every other request for an object breaks: the client repeats it from where it broke off.
    let seen = Mutex::new(HashMap::new());
    let ran = fixture.run(move |request| {
        if request.method != "GET" || request.target.contains("list-type") {
            return Fault::Pass;
        }
        let mut seen = seen.lock().unwrap();
        let count: &mut u64 = seen.entry(request.target.clone()).or_default();
        *count += 1;
        if count.is_multiple_of(2) {
            Fault::Pass
        } else {
            Fault::CutBody(100)
        }
    });
    fixture.is_done(ran);
}

/// Fault 15: a body is shorter than the object, and its length header agrees with the body.
#[test]
fn bodies_that_are_short() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for (part, length) in [
        ("archive/day=", 1000),
        ("/day.parquet", 1000),
        ("_delta_log/00000000000000000001.json", 300),
        ("_delta_log/00000000000000000002.json", 0),
    ] {
        let ran = fixture.run(move |request| {
            if is_get(request, part) {
                Fault::ShortBody(length)
            } else {
                Fault::Pass
            }
        });
        ran.fails(69, &["s3://"]);
        fixture.is_untouched();
    }
    fixture.rerun();
}

/// Fault 16: the batch, or a data file, is replaced by another object between two requests.
#[test]
fn objects_that_are_replaced_while_they_are_read() {
    for (part, name) in [
        ("/day.parquet", "day.parquet"),
        ("archive/day=2026-01-30", "day=2026-01-30"),
    ] {
        // Smaller data files are read at once.
        let Some(fixture) = Fixture::of(20_000) else {
            return;
        };
        let urls = fixture.storage.list(&fixture.at);
        let url = urls.iter().find(|url| url.contains(part)).unwrap().clone();
        let original = fixture.storage.get(&url).unwrap();
        let mut other = original.clone();
        // The new object has the same length and other bytes.
        let middle = other.len() / 2;
        other[middle] ^= 1;
        let storage = fixture.storage.clone();
        let target = url.clone();
        let seen = AtomicU64::new(0);
        let ran = fixture.run(move |request| {
            if is_get(request, part) && seen.fetch_add(1, Ordering::Relaxed) == 1 {
                storage.put(&target, other.clone());
            }
            Fault::Pass
        });
        ran.fails(75, &[name, "replaced while it was read"]);
        fixture.is_untouched();
        fixture.storage.put(&url, original);
        fixture.rerun();
    }
}

/// Fault 17: a data file that the log names is missing, or is not the one that the log describes.
#[test]
fn data_files_that_are_missing_or_cut() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let urls = fixture
        .storage
        .list(&format!("{}/archive/day=2026-01-30", fixture.at));
    let (url, name) = (&urls[0], urls[0].rsplit_once('/').unwrap().1.to_owned());
    let original = fixture.storage.get(url).unwrap();
    fixture.storage.delete(url);
    fixture
        .storage
        .dedup(&fixture.line(""))
        .fails(65, &[&name, "missing"]);
    fixture
        .storage
        .dedup(&format!("archive info {}/archive --verify", fixture.at))
        .fails(65, &[&name, "missing"]);
    fixture
        .storage
        .put(url, original[..original.len() - 10].to_vec());
    fixture.storage.dedup(&fixture.line("")).fails(65, &[&name]);
    // Fault 23 in a store: one bit is flipped.
    let mut flipped = original.clone();
    flipped[original.len() / 3] ^= 4;
    fixture.storage.put(url, flipped);
    fixture
        .storage
        .dedup(&format!("archive info {}/archive --verify", fixture.at))
        .fails(65, &[&name, "SHA-256"]);
    fixture.is_untouched();
    fixture.storage.put(url, original);
    fixture.rerun();
}

/// Fault 18: the log has more entries than one page of a listing, and no checkpoint.
#[test]
fn a_long_log_is_read_in_pages() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("long"));
    let local = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {local} --new 100 --base 1000 --days 3"
    ));
    for (below, bytes) in contents_below(dir.join("data")) {
        if !below.contains("_delta_log") {
            storage.put(&format!("{at}/{below}"), bytes);
        }
    }
    // The entries that commit days are far apart; all others change nothing. A digest is of one version: they have none.
    let entry = |number: u64| {
        let name = format!("data/archive/_delta_log/{number:020}.json");
        let text = fs::read_to_string(dir.join(&name)).unwrap();
        let (start, rest) = text.split_once("\"dedup-job.digest\":\"").unwrap();
        let (_, rest) = rest.split_once("\",").unwrap();
        [start, rest].concat().into_bytes()
    };
    let nothing = br#"{"commitInfo":{"timestamp":1,"operation":"NOTHING"}}"#.to_vec();
    let places = [0, 900, 1700, 2499];
    for number in 0..2500 {
        let day = places.iter().position(|&place| place == number);
        let bytes = day.map_or_else(|| nothing.clone(), |day| entry(day as u64));
        storage.put(&format!("{at}/archive/_delta_log/{number:020}.json"), bytes);
    }
    let (paged, proxy) = storage.through(|_| Fault::Pass);
    let hits = dir.at("hits.parquet");
    let ran = paged.dedup(&format!(
        "run --new {at}/day.parquet --base {at}/archive --append --day 2026-01-31 --output {hits} --json"
    ));
    let summary = ran.ok().json();
    assert_eq!(summary["base"]["version"], 2499);
    assert_eq!(summary["base"]["fingerprints"], 1000);
    assert_eq!(summary["commit"]["committed"], 2500);
    assert!(fs::read(&hits).unwrap() == fs::read(dir.join("data/expected.parquet")).unwrap());
    let pages = proxy.requests().into_iter();
    let pages = pages.filter(|request| request.target.contains("continuation-token"));
    assert!(pages.count() >= 2);
}

/// Fault 19: a server ignores `If-None-Match`. dedup-job creates no archive there, and leaves no
/// test object.
#[test]
fn a_store_without_conditional_creates_is_refused() {
    let Some(server) = careless() else { return };
    let storage = &server.storage;
    let at = storage.unique("careless");
    storage
        .dedup(&format!("archive create --profile paper {at}/archive"))
        .fails(78, &["cannot hold an archive", &at]);
    assert_eq!(storage.list(&at), Vec::<String>::new());
    // dedup-job refuses to append to an archive that was copied there.
    let dir = Dir::new();
    let local = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {local} --new 100 --base 1000"
    ));
    for (below, bytes) in contents_below(dir.join("data")) {
        storage.put(&format!("{at}/{below}"), bytes);
    }
    let before = storage.contents(&at);
    let hits = dir.at("hits.parquet");
    storage
        .dedup(&format!(
            "run --new {local}/day.parquet --base {at}/archive --day 2026-01-31 --output {hits} --append"
        ))
        .fails(78, &["cannot hold an archive", &at]);
    storage
        .dedup(&format!(
            "archive append {at}/archive --input {local}/day.parquet --day 2026-02-01"
        ))
        .fails(78, &["cannot hold an archive"]);
    for line in [
        "archive vacuum",
        "archive vacuum --nothing-runs --older-than 0s",
    ] {
        storage
            .dedup(&format!("{line} {at}/archive"))
            .fails(78, &["cannot hold an archive"]);
    }
    assert!(storage.contents(&at) == before && !dir.join("hits.parquet").exists());
}

/// Fault 20: credentials that are missing, wrong or expired; fault 21: a clock that is wrong.
#[test]
fn what_is_wrong_with_credentials_is_said() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let line = fixture.line("");
    let storage = fixture
        .storage
        .with("AWS_METADATA_ENDPOINT", Some("http://127.0.0.1:1"));
    let (key, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    storage
        .with(key, None)
        .with(secret, None)
        .dedup(&line)
        .fails(77, &[key]);
    storage
        .with(secret, None)
        .dedup(&line)
        .fails(77, &[secret, "not set"]);
    storage
        .with(key, None)
        .dedup(&line)
        .fails(77, &[key, "not set"]);
    storage
        .with(key, Some("SOMEBODYELSE"))
        .dedup(&line)
        .fails(77, &[key]);
    let wrong = "wrong/canary/Secret+Key/0123456789";
    let ran = storage
        .with(secret, Some(wrong))
        .dedup(&line)
        .fails(77, &[secret]);
    assert!(!ran.stderr.contains(wrong));
    storage
        .with("AWS_ALLOW_HTTP", None)
        .dedup(&line)
        .fails(78, &["--allow-http"]);

    let endpoint = format!("http://user:canary-password@{}", storage.address);
    let ran = storage
        .with("AWS_ENDPOINT_URL", Some(&endpoint))
        .dedup(&line)
        .fails(78, &["endpoint", "user"]);
    assert!(!ran.stderr.contains("canary-password"));
    // Only the batch is in the store, and the server's refusal has no body.
    let local = Dir::new();
    dedup_ok(&format!(
        "archive create --profile paper {}",
        local.at("archive")
    ));
    storage
        .with(secret, Some(wrong))
        .dedup(&format!(
            "run --new {}/day.parquet --base {} --output {}",
            fixture.at,
            local.at("archive"),
            local.at("hits.parquet")
        ))
        .fails(77, &[secret]);

    // The real services, unlike this server, quote in their answers what the client sent.
    let token = "canary-session-token-0123456789";
    for (status, code, expected) in [
        (400, "ExpiredToken", "expired"),
        (403, "ExpiredToken", "expired"),
        (403, "RequestTimeTooSkewed", "clock"),
        (403, "AccessDenied", "access was refused"),
    ] {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Refused.</Message><StringToSign>AWS4-HMAC {SECRET_KEY}</StringToSign>\
             <CanonicalRequest>x-amz-security-token:{token}</CanonicalRequest></Error>"
        );
        let (storage, _proxy) = fixture
            .storage
            .with("AWS_SESSION_TOKEN", Some(token))
            .through(move |_| Fault::Status {
                code: status,
                body: body.clone(),
            });
        for verbose in ["", " -vvv", " -vvv --log-format json"] {
            let ran = storage.dedup(&format!("{line}{verbose}"));
            let ran = ran.fails(77, &["s3://", expected]);
            assert!(!ran.stderr.contains(token), "{}", ran.stderr);
        }
    }
    // A service quotes a token that is not from the environment.
    let foreign = "foreign-token-0123456789";
    let (storage, _proxy) = fixture.storage.through(move |_| Fault::Status {
        code: 400,
        body: format!(
            "<Error><Code>InvalidToken</Code><Message>Bad.</Message><Token-0>{foreign}</Token-0></Error>"
        ),
    });
    for verbose in ["", "-v", "-vvv", "-vvv --log-format json"] {
        let ran = storage.dedup(&format!("{line} {verbose}"));
        let ran = ran.fails(77, &["s3://", "token"]);
        assert!(!ran.stderr.contains(foreign), "{}", ran.stderr);
    }
    fixture.is_untouched();
    // The server refuses the request that writes the log entry.
    let (storage, _proxy) = fixture.storage.through(|request| {
        if is_put(request, ENTRY) {
            Fault::Status {
                code: 403,
                body: "<Error><Code>AccessDenied</Code><Message>Read only.</Message></Error>"
                    .into(),
            }
        } else {
            Fault::Pass
        }
    });
    storage.dedup(&line).fails(77, &["access was refused"]);
    fixture.is_untouched();
    fixture.rerun();
}

/// A failed upload of the output leaves the earlier output; a rerun writes it.
#[test]
fn an_output_that_cannot_be_put_in_place() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let broken = |request: &Request| {
        let output = request.path().ends_with("/hits.parquet");
        if output && request.method == "POST" && request.target.contains("uploadId") {
            Fault::Status {
                code: 500,
                body: "<Error><Code>InternalError</Code><Message>We failed</Message></Error>"
                    .into(),
            }
        } else {
            Fault::Pass
        }
    };
    let ran = fixture.run(broken);
    ran.fails(
        69,
        &["2026-01-31", "is committed", "run the same command again"],
    );
    let output = fixture.storage.get(&format!("{}/hits.parquet", fixture.at));
    assert_eq!(output.unwrap(), EARLIER_OUTPUT);
    fixture.rerun();

    // The upload completes, but its answer is lost.
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let first = times(1);
    let ran = fixture.run(move |request| {
        let output = request.path().ends_with("/hits.parquet");
        if output && request.method == "POST" && request.target.contains("uploadId") && first() {
            Fault::LoseResponse
        } else {
            Fault::Pass
        }
    });
    fixture.is_done(ran);
}

/// Fault 35 in a store: a signal that arrives while requests hang aborts the upload.
#[test]
fn signals_stop_a_run_that_waits_for_storage() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let (storage, proxy) = fixture.storage.through(|request| {
        if is_put(request, ENTRY) {
            Fault::Hang
        } else {
            Fault::Pass
        }
    });
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let line = fixture.line("").replace("2s", "60s");
        let child = start(storage.command(), &line);
        let begin = Instant::now();
        let commits = || proxy.requests().iter().filter(|r| is_put(r, ENTRY)).count();
        let before = commits();
        while commits() == before {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        let begin = Instant::now();
        signal(&child, name);
        let ran = Ran::of(child.wait_with_output().unwrap());
        ran.fails(code, &["stopped by", "may be in the archive"]);
        // docs/faults.md allows 2 seconds; this is no benchmark.
        assert!(begin.elapsed() < Duration::from_secs(2));
        fixture.is_untouched();
    }
    fixture.rerun();
}

/// Fault 27: a disk that is full. A limit on the size of files stands in for the disk.
#[test]
fn a_full_disk_is_named_and_nothing_is_lost() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 20000 --base 2000"
    ));
    let hits = dir.at("hits.parquet");
    fs::write(&hits, EARLIER_OUTPUT).unwrap();
    let archived = contents(dir.join("data/archive"));
    let run = format!(
        "run --new {data}/day.parquet --base {data}/archive --append --day 2026-01-31 --output {hits} --scratch {}",
        dir.at("")
    );
    let mut failed = 0;
    // `ulimit -f` counts blocks of 512 bytes. Fingerprints, data files and pairs exceed some of
    // these limits.
    for blocks in [8, 64, 128, 200, 300] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {run}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_dedup-job")])
            .output()
            .unwrap();
        let ran = Ran::of(output);
        if ran.code != 0 {
            ran.fails(74, &["File too large", "/"]);
            failed += 1;
            assert!(contents(dir.join("data/archive")) == archived, "{blocks}");
            assert_eq!(fs::read(&hits).unwrap(), EARLIER_OUTPUT);
        }
    }
    assert!(failed >= 3, "{failed}");
    dedup_ok(&run);
    assert!(fs::read(&hits).unwrap() == fs::read(dir.join("data/expected.parquet")).unwrap());
}

/// Faults 20 and 21 on Azure, whose answers differ.
#[test]
fn what_is_wrong_with_azure_credentials_is_said() {
    let Some(storage) = azurite() else { return };
    let at = storage.unique("credentials");
    let line = format!("archive info {at}/archive");
    let key = "AZURE_STORAGE_ACCOUNT_KEY";
    let wrong = "d3JvbmctY2FuYXJ5LWtleS0wMTIzNDU2Nzg5YWJjZGVmZ2hpamtsbW5vcHFyc3R1";
    let ran = storage
        .with(key, Some(wrong))
        .dedup(&line)
        .fails(77, &[key]);
    assert!(!ran.stderr.contains(wrong));
    storage
        .with("AZURE_STORAGE_USE_EMULATOR", None)
        .with("AZURE_STORAGE_ACCOUNT_NAME", None)
        .dedup(&line)
        .fails(77, &["AZURE_STORAGE_ACCOUNT_NAME"]);
    for (code, detail, expected) in [
        (
            "AuthenticationFailed",
            "Request date header too old: 'Sat'",
            "clock",
        ),
        (
            "AuthenticationFailed",
            "Signature not valid in the specified time frame: Start",
            "expired",
        ),
        ("AuthorizationPermissionMismatch", "", "access was refused"),
    ] {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>No.</Message>\
             <AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
        );
        let (storage, _proxy) = storage.through(move |_| Fault::Status {
            code: 403,
            body: body.clone(),
        });
        storage.dedup(&line).fails(77, &["az://", expected]);
    }
}
