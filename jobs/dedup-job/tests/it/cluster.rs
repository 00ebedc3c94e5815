//! A run on a cluster gives the same bytes as in one process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::helpers::certificates::certificate;
use crate::helpers::crawl_files::{
    write_crawl, write_crawl_with_skipped_frames, write_large_crawl,
    write_large_crawl_with_dictionary,
};
use crate::helpers::processes::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

const COUNTS: &str = "--new 3000 --base 20000 --filler 60000 --days 5";

/// Two executors on local files: every option of a run gives the same bytes as in one process.
#[test]
fn local_files() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!("generate pages --output {data} {COUNTS}")).ok();
    // Splits the batch into several files, formats and row groups.
    let day = read_parquet(dir.join("data/day.parquet"));
    let (ids, pages): (Vec<String>, Vec<String>) = day
        .iter()
        .flat_map(|batch| {
            let rows = texts(batch.column(0))
                .into_iter()
                .zip(texts(batch.column(1)));
            rows.collect::<Vec<_>>()
        })
        .unzip();
    fs::create_dir(dir.join("parts")).unwrap();
    let half = ids.len() / 2;
    write_parquet_in_groups(
        dir.join("parts/a.parquet"),
        vec![
            ("id", strings(&ids[..half])),
            ("text", strings(&pages[..half])),
        ],
        100,
    );
    let lines = ids[half..].iter().zip(&pages[half..]);
    let lines: String = lines
        .map(|(id, text)| format!("{}\n", serde_json::json!({ "id": id, "text": text })))
        .collect();
    fs::write(dir.join("parts/b.jsonl"), lines).unwrap();

    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let expected = fs::read(dir.join("data/expected.parquet")).unwrap();
    let base = format!("--base {data}/archive --day 2026-01-31");
    let plain = dir.at("plain");
    copy_data_files(dir.join("data/archive"), &plain);
    let sketches = dir.at("sketches");
    dedup(&format!("archive create {sketches} --sketch 64")).ok();
    let append = format!("fingerprint --input {data}/day.parquet --append {sketches}");
    dedup(&format!("{append} --day 2026-01-01")).ok();
    let sketches = format!("--new {data}/day.parquet --base {sketches} --day 2026-01-31");
    for (options, is_expected) in [
        (format!("--new {data}/day.parquet {base}"), true),
        (format!("--new {}/ {base}", dir.at("parts")), true),
        (
            format!("--new {data}/day.parquet {base} --no-within"),
            false,
        ),
        (
            format!("--new {data}/day.parquet {base} -k 6 --max-hits-per-document 2"),
            false,
        ),
        (format!("--new {data}/day.parquet {base} -k 8"), false),
        (
            format!(
                "--new {data}/day.parquet {base} -k 5 --verify jaccard --base-text {data}/day.parquet"
            ),
            false,
        ),
        (
            format!("--new {data}/day.parquet --base {plain}/day=*/*.parquet"),
            false,
        ),
        (format!("{sketches} -k 8"), false),
        (
            format!("{sketches} -k 8 --verify sketch --min-similarity 0.9"),
            false,
        ),
    ] {
        let alone = dedup(&format!("run {options} --output {here} --json"))
            .ok()
            .json();
        let summary = dedup(&format!(
            "run {options} --output {there} --cluster {} --json",
            cluster.address()
        ));
        let summary = summary.ok().json();
        let bytes = fs::read(&here).unwrap();
        assert!(fs::read(&there).unwrap() == bytes, "{options}");
        assert!(!is_expected || bytes == expected, "{options}");
        let executors = summary["cluster"]["executors"].as_array().unwrap();
        let sum =
            |field: &str| -> u64 { executors.iter().map(|of| of[field].as_u64().unwrap()).sum() };
        assert_eq!(
            sum("slices"),
            summary["cluster"]["slices"].as_u64().unwrap()
        );
        assert_eq!(sum("documents"), 3000, "{options}");
        assert_eq!(
            sum("probed"),
            summary["base"]["fingerprints"].as_u64().unwrap() * summary["passes"].as_u64().unwrap()
        );
        assert_eq!(summary["cluster"]["slices_again"], 0);
        for field in [
            "new",
            "hits",
            "hits_left_out",
            "verified",
            "commit",
            "spec_digest",
        ] {
            assert_eq!(summary[field], alone[field], "{field}, {options}");
        }
    }

    // Two runs at the same time.
    let line = format!(
        "run --new {data}/day.parquet {base} --cluster {} --output",
        cluster.address()
    );
    let other = dir.at("other.parquet");
    let runs = [&there, &other].map(|output| {
        let line = format!("{line} {output} --quiet");
        command().args(line.split_whitespace()).spawn().unwrap()
    });
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    assert!(fs::read(&there).unwrap() == expected && fs::read(&other).unwrap() == expected);

    // The tables of the batch exceed the executors' memory.
    let mut small = TestCluster::new();
    small.add(&BTreeMap::new(), "--memory-limit 100KiB");
    dedup(&format!(
        "run --new {data}/day.parquet {base} --cluster {} --output {there}",
        small.address()
    ))
    .fails(75, &["too little memory", "--memory-limit"]);

    // Commits a day twice.
    let append = format!(
        "--new {data}/day.parquet {base} --append --cluster {}",
        cluster.address()
    );
    for commit in [
        serde_json::json!({ "committed": 6 }),
        "already_there".into(),
    ] {
        let summary = dedup(&format!("run {append} --output {there} --json"));
        assert_eq!(summary.ok().json()["commit"], commit);
        assert!(fs::read(&there).unwrap() == expected);
    }
    dedup(&format!("archive info {data}/archive --verify")).ok();
}

/// WARC files are dealt out to the executors, which report what they read and what they did not. Pairs, decisions and kept
/// records are those of one process.
#[test]
fn crawls() {
    let dir = Dir::new();
    write_crawl(&dir.join("first"), 0..200);
    write_crawl(&dir.join("second"), 200..500);
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} --markup text")).ok();
    let first = dir.at("first");
    dedup(&format!(
        "archive append {archive} --input {first}/ --day 2026-01-01"
    ))
    .ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let run = |place: &str, options: &str| {
        let at = |name: &str| dir.at(&format!("{place}-{name}"));
        let (pairs, decisions) = (at("pairs.parquet"), at("decisions.parquet"));
        dedup(&format!(
            "run --new {}/ --base {archive} --day 2026-01-31 -k 8 --output {pairs} --decisions {decisions} --kept {}/ \
             --metrics {} --json {options}",
            dir.at("second"),
            at("kept"),
            at("metrics.prom")
        ))
        .ok()
        .json()
    };
    let alone = run("here", "");
    let summary = run("there", &format!("--cluster {}", cluster.address()));
    for field in ["new", "hits", "spec_digest"] {
        assert_eq!(summary[field], alone[field], "{field}");
    }
    let expected =
        serde_json::json!({ "other status": 30, "request": 300, "truncated": 1, "warcinfo": 5 });
    let records = &summary["new"]["crawl_records"];
    assert_eq!(records["skipped"], expected);
    assert_eq!(records["documents"], 269);
    assert_eq!(records["statuses"]["404"], 30);
    let executors = summary["cluster"]["executors"].as_array().unwrap();
    let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
    assert_eq!(documents.sum::<u64>(), 269);
    assert!(read_hits(dir.join("there-pairs.parquet")).len() > 200);
    for name in ["pairs.parquet", "decisions.parquet"] {
        let [here, there] =
            ["here", "there"].map(|place| fs::read(dir.join(&format!("{place}-{name}"))).unwrap());
        assert!(here == there, "{name}");
    }
    let [here, there] = ["here", "there"].map(|place| {
        let kept = dir.join(&format!("{place}-kept"));
        let files = contents(&kept).into_iter();
        let named =
            files.map(|(path, bytes)| (path.strip_prefix(&kept).unwrap().to_owned(), bytes));
        named.collect::<Vec<_>>()
    });
    assert!(here == there && here.len() == 5);
    let metrics = fs::read_to_string(dir.join("there-metrics.prom")).unwrap();
    for line in [
        "dedup_job_new_crawl_records{outcome=\"document\"} 269",
        "dedup_job_new_crawl_records{outcome=\"request\"} 300",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

/// A large WARC file is cut where members start, and several threads or executors read it. The results are those of one reader.
#[test]
fn a_large_crawl_is_shared() {
    let dir = Dir::new();
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} --markup text")).ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let by_cluster = format!("--cluster {}", cluster.address());
    type Write = fn(&Path);
    let crawls: [(&str, Write); 2] = [
        ("gz", write_large_crawl),
        ("zst", write_large_crawl_with_dictionary),
    ];
    for (ending, write) in crawls {
        let crawl = dir.at(&format!("crawl.warc.{ending}"));
        write(Path::new(&crawl));
        // Files of less than 8 MiB are not cut.
        assert!(fs::metadata(&crawl).unwrap().len() > 10 << 20);
        let mut all = Vec::new();
        for (place, options) in [
            ("one", "--threads 1"),
            ("two", "--threads 2"),
            ("cluster", by_cluster.as_str()),
        ] {
            let at = |name: &str| dir.at(&format!("{ending}-{place}-{name}"));
            let kept = format!("kept.warc.{ending}");
            let paths = ["pairs.parquet", "decisions.parquet", &kept].map(at);
            let [pairs, decisions, kept] = &paths;
            let summary = dedup(&format!(
                "run --new {crawl} --base {archive} --output {pairs} --decisions {decisions} --kept {kept} -k 6 --json {options}"
            ));
            let summary = summary.ok().json();
            assert_eq!(summary["new"]["crawl_records"]["documents"], 3_000);
            if place == "cluster" {
                let executors = summary["cluster"]["executors"].as_array().unwrap();
                let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
                assert_eq!(documents.sum::<u64>(), 3_000);
            }
            assert!(read_hits(pairs).len() > 1_400);
            let bytes = paths.map(|path| fs::read(path).unwrap());
            all.push((
                summary["new"].clone(),
                summary["decisions"]["kept"].clone(),
                bytes,
            ));
        }
        assert!(all[0] == all[1] && all[0] == all[2], "{ending}");
    }
}

/// Fault 53: an executor finds that a file is cut within a member. The executors then read it as a whole. Where this process reads
/// the file before, it is whole for the executors.
#[test]
fn a_file_that_is_cut_within_a_member_is_read_again_by_the_cluster() {
    let dir = Dir::new();
    let (crawls, archive) = (dir.at("in"), dir.at("archive"));
    write_crawl(&dir.join("in"), 100..400);
    // The files behind this one have other numbers when it is whole.
    write_crawl_with_skipped_frames(&dir.join("in/a.warc.zst"), true);
    dedup(&format!("archive create {archive} --markup text")).ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let by_cluster = format!("--cluster {}", cluster.address());
    let mut all = Vec::new();
    for (place, options, warnings) in [
        ("one", "--day 2026-01-30 --threads 1".to_owned(), 0),
        ("there", format!("--day 2026-01-30 {by_cluster}"), 1),
        ("days", format!("--day from-records {by_cluster}"), 1),
    ] {
        let at = |name: &str| dir.at(&format!("{place}-{name}"));
        let paths = ["pairs.parquet", "decisions.parquet"].map(at);
        let [pairs, decisions] = &paths;
        let ran = dedup(&format!(
            "run --new {crawls}/ --base {archive} -k 8 --output {pairs} --decisions {decisions} --json {options}"
        ))
        .ok();
        let warned = ran.stderr.matches("this file as a whole").count();
        assert_eq!(warned, warnings, "{place}: {}", ran.stderr);
        let summary = ran.json();
        assert_eq!(summary["new"]["crawl_records"]["documents"], 272);
        if warnings > 0 {
            let executors = summary["cluster"]["executors"].as_array().unwrap();
            let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
            assert_eq!(documents.sum::<u64>(), 272);
        }
        let bytes = paths.map(|path| fs::read(path).unwrap());
        all.push((summary["new"].clone(), bytes));
    }
    assert!(all[1..].iter().all(|other| *other == all[0]));
}

/// Specs with tables of words, which the executors read from the archive or from this process.
#[test]
fn weights_and_stop_words() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 500 --base 2000 --days 2"
    ))
    .ok();
    let (idf, words) = (dir.at("idf.parquet"), dir.at("words.txt"));
    dedup(&format!(
        "idf {data}/day.parquet --output {idf} --terms 300"
    ))
    .ok();
    fs::write(&words, "the\nand\n").unwrap();
    dedup(&format!(
        "idf {data}/day.parquet --stop-words {words} --output {idf} --terms 300"
    ))
    .ok();
    let spec = format!("--idf {idf} --stop-words {words} --weight log-tf");
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} {spec}")).ok();
    dedup(&format!(
        "archive append {archive} --input {data}/day.parquet --day 2026-01-01"
    ))
    .ok();
    let plain = dir.at("plain");
    copy_data_files(&archive, &plain);
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let (kept_here, kept_there) = (dir.at("fp-here.parquet"), dir.at("fp-there.parquet"));
    for options in [
        format!("--base {archive} --day 2026-02-01"),
        format!("--base {plain}/day=2026-01-01/*.parquet {spec}"),
    ] {
        let line = format!("run --new {data}/day.parquet {options}");
        dedup(&format!(
            "{line} --output {here} --fingerprints {kept_here}"
        ))
        .ok();
        let address = cluster.address();
        dedup(&format!(
            "{line} --output {there} --fingerprints {kept_there} --cluster {address}"
        ))
        .ok();
        assert!(fs::read(&here).unwrap() == fs::read(&there).unwrap());
        assert!(fs::read(&kept_here).unwrap() == fs::read(&kept_there).unwrap());
        assert!(read_hits(&here).len() > 500);
    }
}

/// The archive, the batch and the scratch prefix are in an object store; afterwards the prefix is
/// empty.
#[test]
fn object_storage() {
    let Some(storage) = seaweed() else { return };
    let dir = Dir::new();
    let at = storage.unique("cluster");
    storage
        .dedup(&format!("generate pages --output {at} {COUNTS}"))
        .ok();
    let expected = storage.get(&format!("{at}/expected.parquet")).unwrap();
    let cluster = TestCluster::of(2, &storage.environment(), "");
    let line = format!(
        "run --new {at}/day.parquet --base {at}/archive --day 2026-01-31 --cluster {} --json",
        cluster.address()
    );
    storage
        .dedup(&format!("{line} --output {at}/hits.parquet"))
        .fails(64, &["--scratch URL", "s3://"]);
    let line = format!("{line} --scratch {at}/scratch");
    let summary = storage
        .dedup(&format!("{line} --output {at}/hits.parquet --append"))
        .ok()
        .json();
    assert!(storage.get(&format!("{at}/hits.parquet")).unwrap() == expected);
    assert_eq!(summary["commit"]["committed"], 6);
    let requests = |of: &serde_json::Value| of["requests"].as_u64().unwrap();
    let executors = summary["cluster"]["executors"].as_array().unwrap();
    assert!(executors.iter().map(requests).sum::<u64>() > 5);
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());

    // The client fingerprints a batch that is on its own disk.
    let day = dir.at("day.parquet");
    fs::write(&day, storage.get(&format!("{at}/day.parquet")).unwrap()).unwrap();
    let hits = dir.at("hits.parquet");
    let ran = storage.dedup(&format!(
        "run --new {day} --base {at}/archive --day 2026-01-31 --output {hits} --scratch {at}/scratch --cluster {}",
        cluster.address()
    ));
    ran.ok();
    assert!(fs::read(&hits).unwrap() == expected);
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());

    // The client decides, from the batch that the executors read below the scratch prefix.
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let line = format!("run {day} --base {at}/archive --day 2026-01-31 --decisions");
    storage.dedup(&format!("{line} {here}")).ok();
    let address = cluster.address();
    let line = format!("{line} {there} --scratch {at}/scratch --cluster {address}");
    storage.dedup(&line).ok();
    assert!(fs::read(&there).unwrap() == fs::read(&here).unwrap());
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());
}

/// `dedup-job cluster` starts with one command and leaves nothing behind.
#[test]
fn a_cluster_in_one_command() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 300 --base 1000"
    ))
    .ok();
    let mut child = command()
        .args(["cluster", "--executors", "3", "--bind", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("ready") {
        let read = std::io::BufRead::read_line(&mut output, &mut said).unwrap();
        assert!(read > 0, "{said}");
    }
    let address = said
        .split_whitespace()
        .find(|word| word.starts_with("df://"))
        .unwrap();
    let hits = dir.at("hits.parquet");
    let summary = dedup(&format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --output {hits} --cluster {address} --json"
    ));
    assert_eq!(summary.ok().json()["cluster"]["scheduler"], address);
    assert!(fs::read(&hits).unwrap() == fs::read(dir.join("data/expected.parquet")).unwrap());
    let processes = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    assert_eq!(processes.split_whitespace().count(), 4, "{processes}");
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
    for process in processes.split_whitespace() {
        assert!(
            !std::path::Path::new("/proc")
                .join(process)
                .join("exe")
                .exists()
        );
    }
}

/// Wrong options and addresses give errors that say what to do.
#[test]
fn wrong_options() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 30 --base 100"
    ))
    .ok();
    let run = format!(
        "run --new {data}/day.parquet --base {data}/archive --output {}",
        dir.at("h.parquet")
    );
    for (options, code, parts) in [
        ("--cluster http://localhost:1", 64, &["df://HOST:PORT"][..]),
        (
            "--cluster df://user:secret@localhost:1",
            64,
            &["df://HOST:PORT"],
        ),
        (
            "--cluster df://127.0.0.1:9 --executor-wait 1s",
            69,
            &["df://127.0.0.1:9", "no scheduler answers"],
        ),
        ("--cluster df://far.example:9", 64, &["--scratch DIR"]),
        ("--resubmit 1", 64, &["--resubmit needs --cluster"]),
        (
            "--executor-wait 5s",
            64,
            &["--executor-wait needs --cluster"],
        ),
        (
            "--scratch s3://bucket/x",
            64,
            &["a local directory is needed"],
        ),
        (
            "--cluster df://127.0.0.1:9 --tls-ca ca.pem",
            64,
            &["--tls-cert"],
        ),
        (
            "--cluster df://127.0.0.1:9 --tls-ca ca.pem --tls-cert c.pem --tls-key k.pem",
            78,
            &["ca.pem"],
        ),
    ] {
        let ran = dedup(&format!("{run} {options}"));
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
        ran.fails(code, parts);
    }
    // A server that is no scheduler.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || while listener.accept().is_ok() {});
    dedup(&format!(
        "{run} --cluster df://{address} --executor-wait 1s"
    ))
    .fails(69, &["no scheduler answers"]);
    // A scheduler without executors.
    let cluster = TestCluster::new();
    dedup(&format!(
        "{run} --cluster {} --executor-wait 1s",
        cluster.address()
    ))
    .fails(69, &["no executor", "dedup-job executor"]);
    dedup("scheduler --executor-timeout 2s").fails(64, &["at least 6s"]);
    dedup("executor --scheduler nowhere:0/x").fails(64, &["df://HOST:PORT"]);
    dedup("executor").fails(64, &["--scheduler"]);
    let taken = cluster.address().replace("df://", "");
    dedup(&format!("scheduler --bind {taken}")).fails(74, &[&taken, "cannot listen"]);
}

/// Fault 47: an address that other machines can reach needs certificates, or `--insecure`.
#[test]
fn exposed_ports_are_refused() {
    let dir = Dir::new();
    let cluster = TestCluster::new();
    let address = cluster.address();
    // The port is taken, so that a process that is wrongly started ends at once.
    let taken = address.replace("df://127.0.0.1", "0.0.0.0");
    let executor = format!("executor --scheduler {address} --stop-with-stdin --bind");
    let settings = dir.at("settings.toml");
    let by_file = format!("scheduler --config {settings} --stop-with-stdin --bind");
    fs::write(&settings, "[scheduler]\ninsecure = false\n").unwrap();
    for (line, bind) in [
        ("scheduler --stop-with-stdin --bind", "0.0.0.0:0"),
        ("scheduler --stop-with-stdin --bind", "[::]:0"),
        (executor.as_str(), "0.0.0.0:0"),
        (executor.as_str(), "10.255.255.1:0"),
        ("cluster --bind", taken.as_str()),
        (by_file.as_str(), "0.0.0.0:0"),
    ] {
        dedup(&format!("{line} {bind}")).fails(64, &[bind, "--insecure", "--tls-ca", "--tls-key"]);
    }

    fs::write(&settings, "[scheduler]\ninsecure = true\n").unwrap();
    for options in ["--insecure".to_owned(), format!("--config {settings}")] {
        let line = format!("scheduler --bind 0.0.0.0:0 {options}");
        let scheduler = Process::start(&BTreeMap::new(), &line);
        scheduler.wait_for("without encryption");
        let said = scheduler.said["scheduler"].as_str().unwrap();
        let reached = said.replace("0.0.0.0", "127.0.0.1");
        let line = format!("executor --scheduler {reached} --bind 0.0.0.0:0 --insecure");
        let executor = Process::start(&BTreeMap::new(), &line);
        executor.wait_for("without encryption");
    }
}

/// Mutual TLS: only processes with a certificate of the authority take part.
#[test]
fn encryption() {
    let Some(openssl) = tool("openssl") else {
        return;
    };
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 300 --base 1000"
    ))
    .ok();
    let certificates = |authority: &str, name: &str| certificate(&openssl, &dir, authority, name);
    let (scheduler, executor) = (
        certificates("ours", "scheduler"),
        certificates("ours", "executor"),
    );
    let (client, stranger) = (
        certificates("ours", "client"),
        certificates("theirs", "stranger"),
    );
    {
        // Fault 47: with certificates, scheduler and executor may listen on all addresses.
        let exposed = TestCluster::at("0.0.0.0:0", &scheduler);
        let reached = exposed.address().replace("0.0.0.0", "127.0.0.1");
        let line = format!("executor --scheduler {reached} --bind 0.0.0.0:0 {executor}");
        let executor = Process::start(&BTreeMap::new(), &line);
        for process in [&exposed.scheduler, &executor] {
            assert!(!process.log().contains("without encryption"));
        }
    }
    let mut cluster = TestCluster::at("127.0.0.1:0", &scheduler);
    cluster.add(&BTreeMap::new(), &executor);
    let hits = dir.at("hits.parquet");
    let address = cluster.address();
    let line = format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --output {hits} --cluster {address} --executor-wait 1s"
    );
    dedup(&line).fails(69, &[&address]);
    dedup(&format!("{line} {stranger}")).fails(69, &[&address]);
    // The client trusts another authority, so it cannot verify the scheduler.
    let mixed = client.replace(&dir.at("ours.pem"), &dir.at("theirs.pem"));
    dedup(&format!("{line} {mixed}")).fails(69, &[&address]);
    assert!(!dir.join("hits.parquet").exists());
    dedup(&format!("{line} {client}")).ok();
    assert!(fs::read(&hits).unwrap() == fs::read(dir.join("data/expected.parquet")).unwrap());
    // The scheduler refuses an executor without a certificate; the executor logs that it waits.
    let outside = Process::begin(&BTreeMap::new(), &format!("executor --scheduler {address}"));
    outside.wait_for("waiting for the scheduler");
    let swapped = client.replace("client.key", "executor.key");
    dedup(&format!("{line} {swapped}")).fails(78, &[]);
}
