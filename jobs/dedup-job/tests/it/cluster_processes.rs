//! The processes of a cluster: `dedup-job cluster`, addresses, options and encryption.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::helpers::certificates::certificate;
use crate::helpers::processes::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

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

/// `dedup-job cluster --json` prints one line when all processes are ready; `--quiet` prints nothing.
#[test]
fn a_cluster_says_where_it_is_in_json_or_nothing() {
    for option in ["--json", "--quiet"] {
        let mut child = command()
            .args([
                "cluster",
                "--executors",
                "1",
                "--slots",
                "2",
                "--bind",
                "127.0.0.1:0",
                option,
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        if option == "--json" {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut output, &mut line).unwrap();
            let said: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(
                said["scheduler"]
                    .as_str()
                    .unwrap()
                    .starts_with("df://127.0.0.1:")
            );
            let [executor] = &said["executors"].as_array().unwrap()[..] else {
                panic!("{said}")
            };
            assert!(executor["address"].is_string());
            assert_eq!(executor["slots"], 2);
        } else {
            // The address of the scheduler would be printed before the executor starts.
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            while fs::read_to_string(&children)
                .unwrap()
                .split_whitespace()
                .count()
                < 2
            {
                assert!(child.try_wait().unwrap().is_none());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        signal(&child, "TERM");
        let status = child.wait().unwrap();
        // Before the executor is ready, the signal has its default action.
        assert!(status.success() || option == "--quiet", "{status}");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
        assert_eq!(rest, "", "{option}");
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
