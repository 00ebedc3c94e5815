//! Starts the scheduler and the executors of a test cluster, as real processes on loopback.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::helpers::servers::without_secrets;
use crate::helpers::support::*;

/// A process that prints one line of JSON when it is ready.
pub struct Process {
    child: Child,
    /// The process stops when this pipe closes, also when the tests are killed.
    stdin: Option<ChildStdin>,
    pub said: serde_json::Value,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the program in an environment.
    pub fn start(environment: &BTreeMap<String, String>, line: &str) -> Self {
        let mut process = Self::begin(environment, line);
        let mut first = String::new();
        let output = process.child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        process.said = serde_json::from_str(&first)
            .unwrap_or_else(|error| panic!("{line}: {error}: {first:?}: {}", process.log()));
        process
    }

    /// As [`Self::start`], without waiting until it is ready.
    pub fn begin(environment: &BTreeMap<String, String>, line: &str) -> Self {
        let mut command = command();
        let mut child = command
            .args(line.split_whitespace())
            .args(["--json", "--stop-with-stdin", "-v"])
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut errors = child.stderr.take().unwrap();
        let written = Arc::clone(&log);
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = errors.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..bytes]);
                written.lock().unwrap().push_str(&text);
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            said: serde_json::Value::Null,
            log,
            reading: Some(reading),
        }
    }

    /// The process's standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends the process a signal, such as `KILL`.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Kills the process, as if its machine were lost; returns its log.
    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.end();
        self.log()
    }

    /// Waits until the process's log contains `text`.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let begin = Instant::now();
        while !self.log().contains(text) {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "{text:?} is not in {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A frozen process does not notice that it should stop.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("CONT");
        }
        let status = self.end();
        let was_killed = status.code().is_none();
        let log = Ran {
            code: 0,
            stdout: String::new(),
            stderr: self.log(),
        };
        if !std::thread::panicking() {
            assert!(was_killed || status.success(), "{status}: {}", log.stderr);
            assert!(!log.stderr.contains("panicked"), "{}", log.stderr);
            without_secrets(log);
        }
    }
}

/// Sends a signal to a process.
pub fn signal(child: &Child, name: &str) {
    let line = format!("kill -{name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &line]).status().unwrap();
    assert!(sent.success());
}

/// A scheduler with its executors.
pub struct TestCluster {
    pub scheduler: Process,
    pub executors: Vec<Process>,
}

impl TestCluster {
    /// A scheduler with a short executor timeout, without executors.
    pub fn new() -> Self {
        Self::at("127.0.0.1:0", "")
    }

    /// As [`Self::new`], at an address and with more options.
    pub fn at(address: &str, options: &str) -> Self {
        let line = format!("scheduler --bind {address} --executor-timeout 6s {options}");
        Self {
            scheduler: Process::start(&BTreeMap::new(), &line),
            executors: Vec::new(),
        }
    }

    /// Adds an executor in an environment.
    pub fn add(&mut self, environment: &BTreeMap<String, String>, options: &str) {
        let memory = match options.contains("--memory-limit") {
            true => "",
            false => "--memory-limit 1GiB",
        };
        let address = self.address();
        let line = format!("executor --scheduler {address} --slots 1 {memory} {options}");
        self.executors.push(Process::start(environment, &line));
    }

    /// A cluster of `executors` executors.
    pub fn of(executors: usize, environment: &BTreeMap<String, String>, options: &str) -> Self {
        let mut cluster = Self::new();
        for _ in 0..executors {
            cluster.add(environment, options);
        }
        cluster
    }

    pub fn address(&self) -> String {
        self.scheduler.said["scheduler"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}
