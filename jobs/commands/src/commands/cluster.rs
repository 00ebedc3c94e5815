//! `dedup-job cluster`: a scheduler and executors as child processes on this machine.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::Duration;

use cluster::executor::MAX_SLOTS;
use storage::ErrorKind;

use super::scheduler::DEFAULT_BIND;
use crate::args::{ClusterArgs, CommonArgs};
use crate::exit::{Failure, exit_code};
use crate::printing::{print, print_json};
use crate::process;
use crate::signals::StopSignals;

/// How often the child processes are checked.
const CHECK: Duration = Duration::from_millis(200);
/// How long a child process may take to stop before it is killed.
const STOP: Duration = Duration::from_secs(5);

pub fn run(common: &CommonArgs, args: &ClusterArgs) -> Result<(), Failure> {
    let bind = args.bind.unwrap_or(DEFAULT_BIND);
    if cluster::is_exposed(bind) && !args.insecure {
        return Err(Failure::Usage(format!(
            "--bind {bind}: other machines can reach this address, and `dedup-job cluster` has no encryption. Start `dedup-job \
             scheduler` and `dedup-job executor` with --tls-ca, --tls-cert and --tls-key; or add --insecure if you trust every \
             process that can reach the address"
        )));
    }
    if bind.ip().is_unspecified() {
        return Err(Failure::Usage(format!(
            "--bind {bind}: the executors advertise their address; use an address at which other machines reach this one"
        )));
    }
    let executors = usize::from(args.executors.unwrap_or(2));
    let threads = process::threads(common);
    let slots = args
        .slots
        .map_or((threads / executors).clamp(1, MAX_SLOTS), usize::from);
    let memory = process::memory_limit(common) / executors;
    let mut processes = Processes::default();
    // A client that reaches the scheduler must reach the executors, too.
    let executor_bind = SocketAddr::new(bind.ip(), 0).to_string();
    let bind = bind.to_string();
    let mut arguments = vec![
        "scheduler",
        "--json",
        "--stop-with-stdin",
        "--bind",
        bind.as_str(),
    ];
    arguments.extend(args.insecure.then_some("--insecure"));
    let scheduler = processes.start(common, &arguments, "scheduler")?;
    let address = scheduler["scheduler"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    // A script that asks for JSON gets one line when all are ready.
    let say = |line: String| match common.json || common.quiet {
        true => Ok(()),
        false => print(&line),
    };
    say(format!("scheduler at {address}\n"))?;
    let mut started_executors = Vec::new();
    for number in 1..=executors {
        let name = format!("executor {number}");
        let (given_slots, memory) = (slots.to_string(), format!("{memory}B"));
        let mut arguments = vec![
            "executor",
            "--json",
            "--stop-with-stdin",
            "--scheduler",
            &address,
            "--bind",
            &executor_bind,
            "--slots",
            &given_slots,
            "--memory-limit",
            &memory,
        ];
        arguments.extend(args.insecure.then_some("--insecure"));
        let started = processes.start(common, &arguments, &name)?;
        let at = started["address"].as_str().unwrap_or_default();
        say(format!("{name} with {slots} slots at {at}\n"))?;
        started_executors.push(serde_json::json!({ "address": at, "slots": slots }));
    }
    say(format!(
        "ready; in another terminal: dedup-job run … --cluster {address}\n"
    ))?;
    if common.json {
        print_json(&serde_json::json!({
            "scheduler": address,
            "executors": started_executors,
        }))?;
    }
    let mut signals = StopSignals::listen()?;
    let runtime = process::runtime(1)?;
    runtime.block_on(async {
        tokio::select! {
            () = signals.wait(false) => Ok(()),
            failed = processes.watch() => Err(failed),
        }
    })
}

/// Child processes with their names; dropping this stops them.
#[derive(Default)]
struct Processes(Vec<(String, Child)>);

impl Processes {
    /// Starts this program with `arguments` and returns the JSON line that it prints when it is
    /// ready.
    fn start(
        &mut self,
        common: &CommonArgs,
        arguments: &[&str],
        name: &str,
    ) -> Result<serde_json::Value, Failure> {
        let failed = |source| Failure::Io {
            path: format!("starting the {name}"),
            source,
        };
        let mut command = process::program().map_err(failed)?;
        command.args(arguments).args(forwarded(common));
        let mut child = command
            // The child stops when this pipe closes, even if this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take();
        self.0.push((name.to_owned(), child));
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(failed)?;
        }
        serde_json::from_str(&line).map_err(|_| Failure::Child {
            name: name.to_owned(),
            code: self.exit_code_of_last(),
        })
    }

    /// The exit code of the child process that was started last, and has closed its standard output.
    fn exit_code_of_last(&mut self) -> u8 {
        let status = self.0.last_mut().and_then(|(_, child)| child.wait().ok());
        let code = status.and_then(|status| status.code());
        let code = code.and_then(|code| u8::try_from(code).ok());
        code.filter(|code| *code != 0)
            .unwrap_or_else(|| exit_code(ErrorKind::Internal))
    }

    /// Waits until a child process ends, and returns that as a failure.
    async fn watch(&mut self) -> Failure {
        loop {
            for (name, child) in &mut self.0 {
                if let Ok(Some(status)) = child.try_wait() {
                    return Failure::Cluster(cluster::ClusterError::Internal(format!(
                        "the {name} ended with {status}; the cluster is stopped"
                    )));
                }
            }
            tokio::time::sleep(CHECK).await;
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Stops the scheduler last, so that the executors can unregister.
        for (_, child) in self.0.iter_mut().rev() {
            drop(child.stdin.take());
            let begin = std::time::Instant::now();
            while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < STOP {
                std::thread::sleep(CHECK / 10);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The options of every command that the child processes inherit.
fn forwarded(common: &CommonArgs) -> Vec<String> {
    let mut all = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            all.extend([format!("--{name}"), value]);
        }
    };
    let storage = &common.storage;
    let span =
        |time: Option<Duration>| time.map(|time| humantime::format_duration(time).to_string());
    option("scratch", common.scratch.clone());
    option("endpoint", storage.endpoint.clone());
    option(
        "retries",
        storage.retries.map(|retries| retries.to_string()),
    );
    option(
        "request-timeout",
        span(storage.request_timeout).map(|text| text.replace(' ', "")),
    );
    option(
        "retry-deadline",
        span(storage.retry_deadline).map(|text| text.replace(' ', "")),
    );
    if let Some(format) = common.log_format {
        let name = match format {
            crate::args::LogFormat::Text => "text",
            crate::args::LogFormat::Json => "json",
        };
        option("log-format", Some(name.to_owned()));
    }
    let mut switch = |name: &str, given: bool| all.extend(given.then(|| format!("--{name}")));
    switch("allow-http", storage.allow_http);
    switch("quiet", common.quiet);
    for _ in 0..common.verbose {
        all.push("-v".to_owned());
    }
    all
}
