//! Tests of `split`, `map` and `reduce`: whatever happens to the parts, the outputs are those of `run`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::proxy::{Fault, Request};

use crate::helpers::crawl_files::{
    write_crawl, write_crawl_with_skipped_frames, write_large_crawl,
};
use crate::helpers::servers::{Storage, seaweed};
use crate::helpers::support::*;

/// A way to run the program.
type Program<'a> = &'a dyn Fn() -> Command;

/// How the parts of a job are mistreated.
#[derive(Clone, Copy)]
struct Misfortunes {
    /// Parts are killed at a random instant.
    kills: bool,
    /// Parts are done twice, some at the same time.
    repeats: bool,
}

const NONE: Misfortunes = Misfortunes {
    kills: false,
    repeats: false,
};
const ALL: Misfortunes = Misfortunes {
    kills: true,
    repeats: true,
};

fn ran(program: Program<'_>, line: &str) -> Ran {
    Ran::of(program().args(line.split_whitespace()).output().unwrap())
}

/// Starts a command, and kills it after a random time; it may have ended before.
fn killed(program: Program<'_>, line: &str, random: &mut ChaCha8Rng) {
    let mut child = start_unheard(program(), line);
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
    let _ = child.kill();
    child.wait().unwrap();
}

/// Does all rounds of a job until `split` says `ready`; returns the maps of each round.
fn do_rounds(
    program: Program<'_>,
    job: &str,
    options: &str,
    misfortunes: Misfortunes,
    random: &mut ChaCha8Rng,
) -> Vec<Vec<String>> {
    let mut rounds = Vec::new();
    let mut line = format!("split {job} {options} --json");
    loop {
        if misfortunes.kills {
            killed(program, &line, random);
        }
        let split = ran(program, &line);
        // A `split` that was killed may have planned the round; then its parts are missing.
        assert!(
            split.code == 0 || (split.code == 75 && misfortunes.kills),
            "{}",
            split.stderr
        );
        let split = split.json();
        line = format!("split {job} --json");
        if split["ready"] == true {
            return rounds;
        }
        let maps = split["maps"].as_array().unwrap().iter();
        rounds.push(
            maps.map(|map| map["map"].as_str().unwrap().to_owned())
                .collect(),
        );
        let mut parts: Vec<u64> = (0..split["parts"].as_u64().unwrap()).collect();
        parts.shuffle(random);
        // Without all parts, the round is not over.
        if !parts.is_empty() {
            let named = format!("dedup-job map {job} --part");
            ran(program, &line).fails(75, &["is incomplete", &named]);
        }
        for part in parts {
            let threads = random.random_range(1..4);
            let map = format!("map {job} --part {part} --threads {threads}");
            if misfortunes.kills && random.random_bool(0.5) {
                killed(program, &map, random);
            }
            if misfortunes.repeats && random.random_bool(0.3) {
                for child in [0, 1].map(|_| start(program(), &map)) {
                    Ran::of(child.wait_with_output().unwrap()).ok();
                }
            } else {
                ran(program, &map).ok();
            }
        }
    }
}

/// The numbers of a summary that do not depend on the machine or on names.
fn numbers(summary: &Value) -> Value {
    let mut summary = summary.clone();
    for name in [
        "seconds",
        "network",
        "peak_memory_bytes",
        "output",
        "design",
        "passes",
    ] {
        summary.as_object_mut().unwrap().remove(name);
    }
    if let Some(decisions) = summary["decisions"].as_object_mut() {
        decisions.remove("output");
        decisions.remove("kept_output");
    }
    summary
}

/// A batch and an archive in a directory, twice: for `run` and for a job.
struct Twins {
    dir: Dir,
}

impl Twins {
    /// Generates pages, and an archive of three days of them, made with these options.
    fn new(seed: u64, create: &str) -> Self {
        let dir = Dir::new();
        let line = format!(
            "generate pages --output {} --new 300 --base 900 --days 3 --day 2026-01-31 --seed {seed}",
            dir.at("data")
        );
        dedup_ok(&line);
        let twins = Self { dir };
        for twin in ["run", "job"] {
            fs::create_dir(twins.dir.join(twin)).unwrap();
            let archive = twins.at(twin, "archive");
            dedup_ok(&format!("archive create {archive} {create}"));
            for (day, name) in ["2026-01-29", "2026-01-30"]
                .into_iter()
                .zip(["old-1", "old-2"])
            {
                let line = format!(
                    "generate pages --output {}/{name} --new 200 --base 0 --days 1 --day {day} --seed {seed}",
                    twins.at(twin, "")
                );
                dedup_ok(&line);
                let new = twins.at(twin, &format!("{name}/day.parquet"));
                let line = format!(
                    "run {new} --base {archive} --append --day {day} --output {}",
                    twins.at(twin, "old.parquet")
                );
                dedup_ok(&line);
            }
        }
        twins
    }

    fn at(&self, twin: &str, name: &str) -> String {
        self.dir.at(&format!("{twin}/{name}"))
    }

    /// The options of a twin: `{}` stands for its directory.
    fn options(&self, twin: &str, options: &str) -> String {
        options.replace("{}", self.at(twin, "").trim_end_matches('/'))
    }

    /// Compares a run with a job, and the outputs of both, byte for byte.
    fn compare(
        &self,
        options: &str,
        misfortunes: Misfortunes,
        random: &mut ChaCha8Rng,
    ) -> Vec<Vec<String>> {
        let parts = random.random_range(1..6);
        let run = dedup_ok(&format!("run {} --json", self.options("run", options)));
        let job = self.dir.at("JOB");
        let options = format!("{} --parts {parts}", self.options("job", options));
        let rounds = do_rounds(&command, &job, &options, misfortunes, random);
        let reduce = format!("reduce {job} --json");
        if misfortunes.kills {
            (0..3).for_each(|_| killed(&command, &reduce, random));
        }
        let reduced = dedup_ok(&reduce);
        self.same_outputs();
        // A `reduce` that was killed behind its commit finds the day committed.
        if !misfortunes.kills {
            assert_eq!(numbers(&run.json()), numbers(&reduced.json()));
        }
        // Nothing is left but the marker, and one more `reduce` is a rerun of the run.
        let left = contents(&job);
        // A process that is killed while it writes a file leaves an unfinished one, whose name has a mark.
        let names = left
            .iter()
            .map(|(path, _)| path.file_name().unwrap().to_str().unwrap());
        let names: Vec<_> = names.filter(|name| !name.contains('#')).collect();
        assert_eq!(names, ["done.json"]);
        dedup(&reduce);
        self.same_outputs();
        fs::remove_dir_all(&job).unwrap();
        rounds
    }

    /// Asserts that both twins have the same outputs.
    fn same_outputs(&self) {
        let outputs = |twin: &str| contents_below(self.dir.join(twin).join("out"));
        let (run, job) = (outputs("run"), outputs("job"));
        let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
            files.iter().map(|(path, _)| path.clone()).collect()
        };
        assert_eq!(names(&run), names(&job));
        for ((path, run), (_, job)) in run.iter().zip(&job) {
            assert!(run == job, "{path} differs");
        }
    }

    /// Empties the directories of outputs.
    fn clear(&self) {
        for twin in ["run", "job"] {
            let out = self.dir.join(twin).join("out");
            let _ = fs::remove_dir_all(&out);
            fs::create_dir(&out).unwrap();
        }
    }
}

/// Random histories, cuts, orders, repetitions and kills of parts, with every kind of output and verification.
#[test]
fn a_job_is_a_run() {
    let outputs = [
        "--output {}/out/hits.parquet",
        "--decisions {}/out/decisions.csv --kept {}/out/kept.parquet",
        "--decisions {}/out/decisions.jsonl --columns text --output {}/out/hits.csv --fingerprints {}/out/fp.parquet",
    ];
    let verify = [
        "",
        "-k 8",
        "-k 8 --verify sketch",
        "-k 6 --verify jaccard --base-text {}/old-1/day.parquet {}/old-2/day.parquet",
        "-k 5 --verify cosine",
    ];
    for (seed, create) in [
        (1, "--sketch 128 --decisions"),
        (2, "--sketch 256"),
        (3, "--learn DATA --decisions"),
    ] {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let data = Dir::new();
        let line = format!(
            "generate pages --output {} --new 300 --base 0 --days 1 --day 2026-01-31 --seed 9",
            data.at("learnt")
        );
        dedup_ok(&line);
        let create = create.replace("DATA", &data.at("learnt/day.parquet"));
        let twins = Twins::new(seed, &create);
        let batch = twins.dir.at("data/day.parquet");
        for (number, verify) in verify.into_iter().enumerate() {
            let output = outputs[(number + seed as usize) % outputs.len()];
            let misfortunes = if number.is_multiple_of(2) { ALL } else { NONE };
            twins.clear();
            let options = format!("{batch} --base {{}}/archive {output} {verify}");
            twins.compare(&options, misfortunes, &mut random);
            // The day is committed by the last.
            if number + 1 == 5 {
                twins.clear();
                let options = format!("{options} --append --day 2026-01-31");
                twins.compare(&options, ALL, &mut random);
            }
        }
    }
}

/// Each map is a round of parts, and maps that do not need each other are in one round.
#[test]
fn rounds_have_the_maps_of_a_run() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let twins = Twins::new(5, "--sketch 128 --decisions");
    let batch = twins.dir.at("data/day.parquet");
    let mut rounds = |options: &str| {
        twins.clear();
        let options = format!("{batch} --base {{}}/archive {options}");
        twins.compare(&options, NONE, &mut random)
    };
    assert_eq!(
        rounds("--output {}/out/hits.parquet"),
        [vec!["fingerprint"], vec!["probe"]]
    );
    assert_eq!(
        rounds(
            "-k 6 --verify jaccard --decisions {}/out/d.csv --columns text --kept {}/out/k.parquet --output {}/out/h.csv"
        ),
        [
            vec!["fingerprint"],
            vec!["probe", "probe"],
            vec!["digest", "verify"],
            vec!["verify"],
            vec!["copy", "columns"]
        ]
    );
}

/// A batch without an archive, of crawl files, several of them cut or damaged; and of rows without ids.
#[test]
fn batches_of_every_kind_without_an_archive() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let dir = Dir::new();
    write_crawl(&dir.join("crawl"), 0..120);
    let lines: Vec<String> = (0..200)
        .map(|row| {
            let words: Vec<String> = (0..40)
                .map(|at| format!("w{}", (row % 60) * 40 + at))
                .collect();
            format!("{{\"text\":\"{}\",\"n\":{row}}}\n", words.join(" "))
        })
        .collect();
    fs::create_dir(dir.join("rows")).unwrap();
    for (name, lines) in ["a", "b", "c"].into_iter().zip(lines.chunks(80)) {
        fs::write(dir.join(&format!("rows/{name}.jsonl")), lines.concat()).unwrap();
    }
    fs::write(dir.join("rows/empty.jsonl"), "").unwrap();
    for (input, extra) in [("crawl", "--columns url,host"), ("rows", "--columns n")] {
        for twin in ["run", "job"] {
            fs::create_dir_all(dir.join(&format!("{twin}/out"))).unwrap();
        }
        let options = |twin: &str| {
            let out = dir.at(&format!("{twin}/out"));
            format!(
                "{} --decisions {out}/d-{input}.csv --kept {out}/kept-{input}/ --output {out}/h-{input}.csv {extra} --verify jaccard -k 6",
                dir.at(input)
            )
        };
        let run = dedup_json(&format!("run {} --json", options("run")));
        let job = dir.at(&format!("JOB-{input}"));
        do_rounds(
            &command,
            &job,
            &format!("{} --parts 3", options("job")),
            ALL,
            &mut random,
        );
        let reduced = dedup_json(&format!("reduce {job} --json"));
        assert_eq!(numbers(&run), numbers(&reduced));
        assert!(reduced["decisions"]["kept"].as_u64().unwrap() > 0);
    }
    let twins = Twins { dir };
    twins.same_outputs();
}

/// Parts know the least similarity to its last bit, which a number in JSON may lose.
#[test]
fn the_least_similarity_is_the_same_in_parts() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let twins = Twins { dir: Dir::new() };
    // The texts have 30 and 29 shingles of three words. They share the 17 shingles of their first 19 words.
    let words: Vec<String> = (0..32).map(|word| format!("word{word}")).collect();
    let mut other = words[..31].to_vec();
    other[19..].reverse();
    let new = twins.dir.at("new.jsonl");
    let documents = [("a", &words), ("b", &other)]
        .map(|(id, words)| json!({ "id": id, "text": words.join(" ") }).to_string());
    fs::write(&new, documents.join("\n")).unwrap();
    for twin in ["run", "job"] {
        fs::create_dir(twins.dir.join(twin)).unwrap();
    }
    // 17/42, and the next number.
    for (least, pairs) in [("0.40476190476190477", 1), ("0.4047619047619048", 0)] {
        twins.clear();
        let options = format!(
            "{new} -k 16 --verify jaccard --min-similarity {least} --output {{}}/out/h.csv --decisions {{}}/out/d.csv"
        );
        twins.compare(&options, NONE, &mut random);
        let hits = fs::read_to_string(twins.at("run", "out/h.csv")).unwrap();
        assert_eq!(hits.lines().count(), 1 + pairs, "{least}: {hits}");
    }
}

/// Large crawls are cut for parts. One is cut where it must not be, which a part finds: it is planned again as a whole.
#[test]
fn large_crawls_are_cut_for_parts() {
    let dir = Dir::new();
    let mut random = ChaCha8Rng::seed_from_u64(23);
    fs::create_dir(dir.join("in")).unwrap();
    write_crawl_with_skipped_frames(&dir.join("in/a.warc.zst"), true);
    write_large_crawl(&dir.join("in/b.warc.gz"));
    for twin in ["run", "job"] {
        fs::create_dir_all(dir.join(&format!("{twin}/out"))).unwrap();
    }
    let options = |twin: &str| {
        let out = dir.at(&format!("{twin}/out"));
        format!(
            "{}/ --decisions {out}/d.csv --kept {out}/kept/ --output {out}/h.csv --columns url -k 6",
            dir.at("in")
        )
    };
    let run = dedup_json(&format!("run {} --json", options("run")));
    let job = dir.at("JOB");
    let options = format!("{} --parts 4", options("job"));
    let rounds = do_rounds(&command, &job, &options, NONE, &mut random);
    assert_eq!(rounds[..3], [["pages"], ["pages"], ["fingerprint"]]);
    let reduced = dedup_json(&format!("reduce {job} --json"));
    assert_eq!(numbers(&run), numbers(&reduced));
    Twins { dir }.same_outputs();
}

/// Where a job has all but its record.
fn work(job: &str) -> PathBuf {
    let entries = fs::read_dir(job)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_work = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("work-")
    };
    entries.into_iter().find(is_work).unwrap()
}

/// A part that is damaged, foreign or of another input is no answer.
#[test]
fn what_is_no_answer() {
    let twins = Twins::new(11, "");
    twins.clear();
    let job = twins.dir.at("JOB");
    let batch = twins.at("job", "batch.parquet");
    fs::copy(twins.dir.join("data/day.parquet"), &batch).unwrap();
    let options = twins.options(
        "job",
        &format!("{batch} --base {{}}/archive --output {{}}/out/hits.parquet --parts 3"),
    );
    dedup(&format!("map {job} --part 0")).fails(64, &["there is no job"]);
    dedup(&format!("split {job}")).fails(64, &["there is no job yet", "NEW"]);
    dedup(&format!("split {job} {options} --metrics m.prom")).fails(64, &["--metrics", "reduce"]);
    dedup_ok(&format!("split {job} {options}"));
    dedup(&format!("split {job} {options} -k 5")).fails(64, &["other options", "--restart"]);
    dedup(&format!("map {job} --part 1..9")).fails(64, &["--part 3", "parts 0 to"]);
    dedup(&format!("map {job} --part x")).fails(64, &["no list of parts"]);
    dedup(&format!("reduce {job}")).fails(75, &["dedup-job map"]);
    let parts = dedup_json(&format!("map {job} --part 0 --json"));
    assert_eq!(parts["parts"][0]["was_done"], false);
    let parts = dedup_json(&format!("map {job} --part 0 --json"));
    assert_eq!(parts["parts"][0]["was_done"], true);
    dedup_ok(&format!("map {job} --part 1,2"));
    dedup_ok(&format!("split {job}"));

    // The fingerprints of the batch that all parts read.
    let plan = fs::read_to_string(work(&job).join("round-2/plan.json")).unwrap();
    let objects = fs::read_dir(work(&job).join("objects")).unwrap();
    let names = objects.map(|object| object.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| plan.contains(name)).collect();
    assert!(!names.is_empty(), "{plan}");
    for name in names {
        let object = work(&job).join("objects").join(&name);
        let sound = fs::read(&object).unwrap();
        let mut damaged: Vec<Vec<u8>> = (1..20)
            .map(|part| {
                let mut damaged = sound.clone();
                damaged[sound.len() * part / 20] ^= 1;
                damaged
            })
            .collect();
        damaged.extend([sound[..sound.len() / 2].to_vec(), Vec::new()]);
        for bytes in damaged {
            fs::write(&object, bytes).unwrap();
            let map = dedup(&format!("map {job} --part 0"));
            map.fails(65, &[&name, "not those that `split` wrote"]);
        }
        fs::write(&object, sound).unwrap();
    }

    // A damaged answer is named, and made again.
    let part = work(&job).join("round-2/part-00001");
    dedup_ok(&format!("map {job} --part 0..2"));
    let sound = fs::read(&part).unwrap();
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 1;
    for bytes in [damaged, sound[..sound.len() - 1].to_vec(), Vec::new()] {
        fs::write(&part, bytes).unwrap();
        let line = format!("dedup-job map {job} --part 1");
        dedup(&format!("split {job}")).fails(75, &["part 1 damaged", &line]);
        dedup(&format!("reduce {job}")).fails(75, &["part 1 damaged", &line]);
        dedup_ok(&format!("map {job} --part 1"));
    }
    // So is one of another part, or of another job.
    fs::copy(work(&job).join("round-2/part-00000"), &part).unwrap();
    dedup(&format!("split {job}")).fails(78, &["part-00001", "another part"]);
    let other = twins.dir.at("OTHER");
    dedup_ok(&format!("split {other} {options}"));
    dedup_ok(&format!("map {other} --part 0..2"));
    fs::copy(work(&other).join("round-1/part-00000"), &part).unwrap();
    dedup(&format!("split {job}")).fails(78, &["part-00001", "another job"]);
    fs::remove_file(&part).unwrap();

    // Another version of the program.
    let record = Path::new(&job).join("job.json");
    let json = fs::read_to_string(&record).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(json.contains(&version));
    let (record_json, _) = json.rsplit_once('\n').unwrap();
    let record_json = record_json.replace(&version, "\"version\":\"0.0.9\"");
    let digest = Sha256::digest(format!("job.json{record_json}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(&record, format!("{record_json}\n{digest}")).unwrap();
    for line in [
        format!("split {job}"),
        format!("map {job} --part 1"),
        format!("reduce {job}"),
    ] {
        let with = "--restart` with the options of the run";
        dedup(&line).fails(78, &["0.0.9", env!("CARGO_PKG_VERSION"), with]);
    }
    fs::write(&record, json).unwrap();

    // The job itself, when it is ready: no bit of its plans may change.
    dedup_ok(&format!("map {job} --part 1"));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    do_rounds(&command, &job, &options, NONE, &mut random);
    let plans = ["round-1/plan.json", "round-2/plan.json", "batch.json"];
    let plans = plans.map(|name| work(&job).join(name));
    for object in plans.iter().chain([&record]) {
        let sound = fs::read(object).unwrap();
        let mut damaged: Vec<Vec<u8>> = (0..6)
            .map(|part| {
                let mut damaged = sound.clone();
                damaged[sound.len() * part / 6] ^= 4;
                damaged
            })
            .collect();
        damaged.extend([sound[1..].to_vec(), b"{}".to_vec(), Vec::new()]);
        damaged.push([sound.clone(), b"x".to_vec()].concat());
        if *object == plans[0] {
            damaged.push(fs::read(&plans[1]).unwrap());
        }
        for bytes in damaged {
            fs::write(object, bytes).unwrap();
            // A `split` that is ready does not read the batch.
            let commands = ["reduce", "split"];
            for command in &commands[..if *object == plans[2] { 1 } else { 2 }] {
                let ran = dedup(&format!("{command} {job}"));
                ran.fails(65, &[object.to_str().unwrap(), "damaged", "--restart"]);
            }
        }
        fs::write(object, sound).unwrap();
    }
    let objects = fs::read_dir(work(&job).join("objects")).unwrap();
    for object in objects.map(|object| object.unwrap().path()) {
        let sound = fs::read(&object).unwrap();
        fs::remove_file(&object).unwrap();
        let ran = dedup(&format!("split {job}"));
        assert!(ran.code == 0 || ran.code == 65, "{ran:?}");
        if ran.code == 65 {
            ran.fails(65, &["is missing", "--restart"]);
        }
        fs::write(&object, sound).unwrap();
    }

    // A changed input.
    fs::copy(
        twins.at("job", "old-1/day.parquet"),
        twins.at("job", "other.parquet"),
    )
    .unwrap();
    fs::rename(twins.at("job", "other.parquet"), &batch).unwrap();
    dedup(&format!("split {other}")).fails(78, &["batch.parquet", "--restart"]);
    dedup_ok(&format!("map {job} --part 1"));
    dedup(&format!("reduce {job}")).fails(78, &["batch.parquet", "--restart"]);
    // Anew, with another batch and other options; the record is damaged, too.
    fs::write(&record, "{").unwrap();
    let options = format!("{options} -k 4 --restart");
    do_rounds(&command, &job, &options, NONE, &mut random);
    dedup_ok(&format!("reduce {job} --keep-job"));
    assert!(work(&job).join("round-1/plan.json").exists());
}

/// An archive that was made anew or restored, with as many versions as before, is another one. So are other texts of its documents.
#[test]
fn another_archive_and_other_texts_of_it_are_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(37);
    let dir = Dir::new();
    for name in ["old", "other", "new"] {
        let text = format!("all that anybody said in the {name} document");
        write_documents(
            dir.join(&format!("{name}.parquet")),
            &[(name, text.as_str())],
        );
    }
    let archive = dir.archive("archive", "");
    let created = contents(&archive);
    let append = |name: &str| {
        let [new, output] = ["parquet", "csv"].map(|ending| dir.at(&format!("{name}.{ending}")));
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day 2026-01-01 --output {output}"
        ));
    };
    append("old");
    let (texts, job) = (dir.at("texts.parquet"), dir.at("JOB"));
    fs::copy(dir.join("old.parquet"), &texts).unwrap();
    let options = format!(
        "{} --base {archive} --append --day 2026-01-02 -k 6 --verify jaccard --base-text {texts} --output {}",
        dir.at("new.parquet"),
        dir.at("h.csv")
    );
    do_rounds(&command, &job, &options, NONE, &mut random);
    let refused = |path: &str| {
        dedup(&format!("reduce {job}")).fails(78, &[path, "since the job was split", "--restart"]);
    };
    let aside = dir.at("aside");
    fs::rename(&archive, &aside).unwrap();
    refused("_delta_log");
    for (path, bytes) in created {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    refused("_delta_log");
    append("other");
    refused("_delta_log");
    fs::remove_dir_all(&archive).unwrap();
    fs::rename(&aside, &archive).unwrap();

    fs::rename(&texts, &aside).unwrap();
    refused("texts.parquet");
    fs::copy(dir.join("other.parquet"), &texts).unwrap();
    refused("texts.parquet");
    fs::rename(&aside, &texts).unwrap();
    dedup_ok(&format!("reduce {job}"));
}

/// Options that no job can have are refused before anything is written.
#[test]
fn a_job_that_is_refused_leaves_nothing() {
    let dir = Dir::new();
    for name in ["new", "old"] {
        write_documents(
            dir.join(&format!("{name}.parquet")),
            &[(name, "one two three four five")],
        );
    }
    let job = dir.at("JOB");
    let options = format!(
        "{} -k 6 --output {}",
        dir.at("new.parquet"),
        dir.at("h.csv")
    );
    let documents = format!("--base {}", dir.at("old.parquet"));
    let classes = "--verify jaccard --pairs classes --decisions d.csv";
    for (more, reason) in [
        (classes, "--pairs classes"),
        (documents.as_str(), "parts of a job"),
    ] {
        dedup(&format!("split {job} {options} {more}")).fails(64, &[reason]);
        assert!(!Path::new(&job).exists(), "{more}");
    }
    dedup_ok(&format!("split {job} {options}"));
}

/// Copies of kept documents that are missing or damaged are named by their part, and made again.
#[test]
fn damaged_copies_are_made_again() {
    let mut random = ChaCha8Rng::seed_from_u64(14);
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    for name in ["a", "b"] {
        let line = format!("{{\"id\": \"{name}\", \"text\": \"all that {name} says\"}}\n");
        fs::write(dir.join(&format!("in/{name}.jsonl")), line).unwrap();
    }
    let (job, kept) = (dir.at("JOB"), dir.at("kept"));
    let options = format!("{} --kept {kept}", dir.at("in"));
    do_rounds(&command, &job, &options, NONE, &mut random);
    let copies = fs::read_dir(work(&job).join("copies")).unwrap();
    let copies: Vec<PathBuf> = copies.map(|copy| copy.unwrap().path()).collect();
    assert_eq!(copies.len(), 2);
    for copy in &copies {
        let sound = fs::read(copy).unwrap();
        let flipped = [&sound[..9], b"?", &sound[10..]].concat();
        for damage in [None, Some(&sound[1..]), Some(&flipped)] {
            match damage {
                None => fs::remove_file(copy).unwrap(),
                Some(bytes) => fs::write(copy, bytes).unwrap(),
            }
            if damage.is_some_and(|bytes| bytes.len() == sound.len()) {
                let name = copy.file_name().unwrap().to_str().unwrap();
                dedup(&format!("reduce {job}")).fails(65, &[name, "is removed"]);
            }
            let part = format!("dedup-job map {job} --part ");
            let named = dedup(&format!("split {job}"));
            named.fails(75, &["damaged", &part]);
            let reduce = dedup(&format!("reduce {job}"));
            let part = reduce.stderr.split(&part).nth(1).unwrap()[..1].to_owned();
            reduce.fails(75, &["damaged"]);
            dedup_ok(&format!("map {job} --part {part}"));
            assert_eq!(fs::read(copy).unwrap(), sound);
        }
    }
    dedup_ok(&format!("reduce {job}"));
    for name in ["a", "b"] {
        let [before, after] = ["in", "kept"].map(|of| dir.join(&format!("{of}/{name}.jsonl")));
        assert_eq!(fs::read(after).unwrap(), fs::read(before).unwrap());
    }
}

/// Copies in a store: one that was changed is made again, one that the store did not make is missed, and those in place are named.
#[test]
fn a_store_does_not_copy_what_was_changed_and_says_what_it_copied() {
    let Some(storage) = seaweed() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(47);
    let root = storage.unique("copies");
    let (job, kept) = (format!("{root}/JOB"), format!("{root}/kept"));
    let line = |name: &str| {
        let line = format!("{{\"id\": \"{name}\", \"text\": \"all that {name} says\"}}\n");
        line.into_bytes()
    };
    for name in ["a", "b"] {
        storage.put(&format!("{root}/in/{name}.jsonl"), line(name));
    }
    let options = format!("{root}/in/ --kept {kept}/");
    do_rounds(&|| storage.command(), &job, &options, NONE, &mut random);
    let copies = storage.list(&job).into_iter();
    let copies: Vec<String> = copies.filter(|url| url.contains("/copies/")).collect();
    assert_eq!(copies.len(), 2);
    let sound = storage.get(&copies[0]).unwrap();
    storage.put(&copies[0], [&sound[..9], b"?", &sound[10..]].concat());
    let reduce = storage.dedup(&format!("reduce {job}"));
    let part = format!("dedup-job map {job} --part ");
    let part = reduce.stderr.split(&part).nth(1).unwrap()[..1].to_owned();
    reduce.fails(75, &["damaged"]);
    storage.dedup_ok(&format!("map {job} --part {part}"));
    assert_eq!(storage.get(&copies[0]).unwrap(), sound);
    // Put there again, it is the same.
    storage.put(&copies[0], sound);
    let answered = |code: u16, body: &'static str| {
        let (through, _proxy) = storage.through(move |request: &Request| {
            let is_copy = request.header("x-amz-copy-source").is_some();
            if is_copy && request.path().ends_with("/b.jsonl") {
                let body = body.into();
                Fault::Status { code, body }
            } else {
                Fault::Pass
            }
        });
        through.dedup(&format!("reduce {job}"))
    };
    let refused = answered(403, "<Error><Code>AccessDenied</Code></Error>");
    refused.fails(77, &["in place already", "/kept/a.jsonl"]);
    let etag = "<CopyObjectResult><ETag>\"1\"</ETag></CopyObjectResult>";
    answered(200, etag).fails(69, &["/kept/b.jsonl", "has kept 0 of"]);
    storage.dedup_ok(&format!("reduce {job}"));
    for name in ["a", "b"] {
        assert_eq!(
            storage.get(&format!("{kept}/{name}.jsonl")).unwrap(),
            line(name)
        );
    }
}

/// A day that is committed between `split` and `reduce`: the batch is compared with it, too, as a run would.
#[test]
fn another_day_is_committed_meanwhile() {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let twins = Twins::new(13, "--sketch 128 --decisions");
    twins.clear();
    let batch = twins.dir.at("data/day.parquet");
    let other = "{}/old-1/day.parquet --base {}/archive --append --day 2026-02-02 --output {}/other.parquet --prefer id";
    let options = format!(
        "{batch} --base {{}}/archive --append --day 2026-01-31 --decisions {{}}/out/d.csv --kept {{}}/out/k.parquet -k 6 --verify sketch"
    );
    let job = twins.dir.at("JOB");
    do_rounds(
        &command,
        &job,
        &twins.options("job", &options),
        NONE,
        &mut random,
    );
    for twin in ["run", "job"] {
        dedup_ok(&format!("run {}", twins.options(twin, other)));
    }
    dedup_ok(&format!("run {}", twins.options("run", &options)));
    let reduced = dedup_json(&format!("reduce {job} --json"));
    assert_eq!(reduced["comparisons"], 2);
    twins.same_outputs();
}

/// Writes a folder with two files of random documents, one of which has a column `rank`, and a file of pins about some of these.
/// Returns the paths of the folder and of the pins.
fn write_pinned(dir: &Dir, number: usize, random: &mut ChaCha8Rng) -> (String, String) {
    let (new, pins) = (
        dir.at(&format!("new-{number}")),
        dir.at(&format!("pins-{number}")),
    );
    fs::create_dir(&new).unwrap();
    for name in ["a", "b"] {
        let mut lines = String::new();
        for _ in 0..12 {
            let id = random.random_range(0..30_u32);
            let content = random.random_range(0..50_u32);
            let text: String = (0..60).map(|word| format!("c{content}w{word} ")).collect();
            let mut document = json!({ "id": format!("d{id}"), "text": text });
            if name == "a" {
                document["rank"] = json!(random.random_range(0..3_u32));
            }
            lines += &format!("{document}\n");
        }
        fs::write(format!("{new}/{name}.jsonl"), lines).unwrap();
    }
    let mut said: BTreeMap<(u32, Option<u32>), &str> = BTreeMap::new();
    for _ in 0..8 {
        let (a, b) = (
            random.random_range(0..30_u32),
            random.random_range(0..30_u32),
        );
        match ["same", "same", "distinct", "keep"][random.random_range(0..4_usize)] {
            "keep" => said.insert((a, None), "keep"),
            kind if a != b => said.insert((a.min(b), Some(a.max(b))), kind),
            _ => None,
        };
    }
    let mut lines = String::from(if number.is_multiple_of(2) {
        "pin,id,other\n"
    } else {
        ""
    });
    for ((id, other), pin) in said {
        let (id, other) = (format!("d{id}"), other.map(|other| format!("d{other}")));
        lines += &if number.is_multiple_of(2) {
            format!("{pin},{id},{}\n", other.unwrap_or_default())
        } else {
            format!("{}\n", json!({ "pin": pin, "id": id, "other": other }))
        };
    }
    fs::write(&pins, lines).unwrap();
    (new, pins)
}

/// Random histories of several batches a day, with pins and updates; a batch is done once more.
#[test]
fn pins_updates_and_batches_are_those_of_a_run() {
    for seed in 1..3 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let twins = Twins { dir: Dir::new() };
        for twin in ["run", "job"] {
            fs::create_dir(twins.dir.join(twin)).unwrap();
            dedup_ok(&format!("archive create {}", twins.at(twin, "archive")));
        }
        let mut committed = Vec::new();
        for number in 0..5_usize {
            let misfortunes = if number.is_multiple_of(2) { NONE } else { ALL };
            if number < 4 {
                let (new, pins) = write_pinned(&twins.dir, number, &mut random);
                let rule = ["both", "keep-new", "keep-old"][random.random_range(0..3_usize)];
                committed.push(format!(
                    "{new} --base {{}}/archive --append --day 2026-03-0{} --batch b{} --pins {pins} --on-update {rule} --prefer rank,longest --decisions {{}}/out/d.jsonl --kept {{}}/out/kept/ --output {{}}/out/h.csv",
                    1 + number / 2,
                    number % 2
                ));
            }
            let options = match committed.get(number) {
                Some(options) => options.clone(),
                None => committed[random.random_range(0..committed.len())].clone(),
            };
            twins.clear();
            twins.compare(&options, misfortunes, &mut random);
            for command in ["archive info", "groups"] {
                let [run, job] = ["run", "job"].map(|twin| {
                    let line = format!("{command} {} --json", twins.at(twin, "archive"));
                    dedup_ok(&line).stdout.replace(&twins.at(twin, ""), "")
                });
                assert_eq!(run, job, "seed {seed}, batch {number}: {command}");
            }
        }
    }
}

/// Ids that are removed between `split` and `reduce` are in none of the pins that the archive then remembers.
#[test]
fn pins_that_are_removed_meanwhile_stay_removed() {
    let mut random = ChaCha8Rng::seed_from_u64(31);
    let dir = Dir::new();
    let (archive, job, ids) = (dir.at("archive"), dir.at("JOB"), dir.at("ids.txt"));
    dedup_ok(&format!("archive create {archive}"));
    let options = |day: u32, id: &str| {
        let [new, pins, output] =
            ["parquet", "csv", "jsonl"].map(|of| dir.at(&format!("{day}.{of}")));
        let text = format!("all that is said on day {day}");
        write_documents(&new, &[("d", text.as_str())]);
        fs::write(&pins, format!("pin,id,other\nkeep,{id},\n")).unwrap();
        format!(
            "{new} --base {archive} --append --day 2026-01-0{day} --pins {pins} --output {output}"
        )
    };
    dedup_ok(&format!("run {}", options(1, "secret")));
    do_rounds(&command, &job, &options(2, "d"), NONE, &mut random);
    fs::write(&ids, "secret\n").unwrap();
    let remove = format!("archive remove {archive} --ids {ids}");
    dedup_ok(&remove);
    dedup_ok(&format!("reduce {job}"));
    let again = dedup_ok(&remove).stdout;
    assert!(again.contains("nothing to remove"), "{again}");
}

/// Jobs that were left behind are found and removed; other files stay.
#[test]
fn jobs_that_were_left_behind() {
    let dir = Dir::new();
    fs::create_dir(dir.join("jobs")).unwrap();
    fs::write(dir.join("jobs/job.json"), "{\"another\": \"program\"}").unwrap();
    write_documents(
        dir.join("a.parquet"),
        &[
            ("a", "one two three four five"),
            ("b", "one two three four five"),
        ],
    );
    for job in ["one", "two"] {
        let line = format!(
            "split {} {} --output {}",
            dir.at(&format!("jobs/{job}")),
            dir.at("a.parquet"),
            dir.at("h.csv")
        );
        dedup_ok(&line);
    }
    // Two that are reduced: what the first leaves is as if its `reduce` had been killed, and the second is kept on purpose.
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for (job, options) in [("three", ""), ("four", "--keep-job")] {
        let [place, output] =
            [format!("jobs/{job}"), format!("{job}.csv")].map(|name| dir.at(&name));
        let of_run = format!("{} --output {output}", dir.at("a.parquet"));
        do_rounds(&command, &place, &of_run, NONE, &mut random);
        let before = contents(&place);
        dedup_ok(&format!("reduce {place} {options}"));
        for (path, bytes) in before {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    let vacuum = |options: &str| {
        let line = format!("archive vacuum --jobs {} --json {options}", dir.at("jobs"));
        let jobs = dedup_json(&line)["jobs"].as_array().unwrap().clone();
        let names = jobs.iter().map(|job| {
            job["job"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        vacuum("--older-than 1h --nothing-runs"),
        Vec::<String>::new()
    );
    assert_eq!(
        vacuum("--older-than 0s --nothing-runs --dry-run"),
        ["one", "three", "two"]
    );
    assert!(dir.join("jobs/one/job.json").exists());
    assert_eq!(
        vacuum("--older-than 0s --nothing-runs"),
        ["one", "three", "two"]
    );
    let paths = contents(dir.join("jobs")).into_iter().map(|(path, _)| path);
    let (kept, mut left): (Vec<_>, Vec<_>) =
        paths.partition(|path| path.starts_with(dir.join("jobs/four")));
    left.sort();
    assert_eq!(
        left,
        ["job.json", "three/done.json"].map(|name| dir.join(&format!("jobs/{name}")))
    );
    assert!(kept.len() > 2, "{kept:?}");
    dedup("archive vacuum").fails(64, &["<DIR>"]);
}

/// A list that leaves out objects: what runs and what was kept on purpose stays, and what is removed is removed as a whole.
#[test]
fn jobs_do_not_depend_on_one_list() {
    let Some(storage) = seaweed() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let root = storage.unique("jobs");
    let documents =
        (0..20).map(|id| format!("{{\"id\":\"{id}\",\"text\":\"all that {id} says\"}}\n"));
    storage.put(
        &format!("{root}/new.jsonl"),
        documents.collect::<String>().into(),
    );
    let direct = || storage.command();
    let [runs, kept, ends] = ["runs", "kept", "ends"].map(|name| format!("{root}/jobs/{name}"));
    let options = |job: &str| format!("{root}/new.jsonl --output {job}.csv");
    storage.dedup_ok(&format!("split {runs} {}", options(&runs)));
    do_rounds(&direct, &kept, &options(&kept), NONE, &mut random);
    storage.dedup_ok(&format!("reduce {kept} --keep-job"));
    // It shows the records alone, and these as old.
    let entries = [&runs, &kept].map(|job| {
        let key = job.strip_prefix("s3://crawl/").unwrap();
        format!(
            "<Contents><Key>{key}/job.json</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
        )
    });
    let list = |entries: &str| {
        format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")
    };
    let short = list(&entries.concat());
    let (through, _proxy) = storage.through(move |request: &Request| {
        if request.target.contains("list-type=2") {
            Fault::ReplaceBody(short.clone().into())
        } else {
            Fault::Pass
        }
    });
    let before = storage.contents(&format!("{root}/jobs"));
    let vacuum = format!("archive vacuum --jobs {root}/jobs --older-than 24h --json");
    assert_eq!(through.dedup_ok(&vacuum).json()["jobs"], json!([]));
    assert!(storage.contents(&format!("{root}/jobs")) == before);

    let (empty, lists) = (list(""), AtomicU64::new(0));
    let (through, _proxy) = storage.through(move |request: &Request| {
        let is_list = request.target.contains("list-type=2") && request.target.contains("work-");
        if is_list && lists.fetch_add(1, Ordering::Relaxed) == 0 {
            Fault::ReplaceBody(empty.clone().into())
        } else {
            Fault::Pass
        }
    });
    let faulty = || through.command();
    do_rounds(&direct, &ends, &options(&ends), NONE, &mut random);
    ran(&faulty, &format!("reduce {ends}")).ok();
    assert_eq!(storage.list(&ends), [format!("{ends}/done.json")]);
}

/// What fails behind the commit says that the run is done: the marker, and the removal of the rest.
#[test]
fn a_reduce_that_fails_behind_its_commit_says_so() {
    let Some(storage) = seaweed() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(43);
    let root = storage.unique("behind");
    let [archive, job, new] = ["archive", "JOB", "new.jsonl"].map(|name| format!("{root}/{name}"));
    let document = json!({ "id": "a", "text": "all that is said in one document" });
    storage.put(&new, document.to_string().into());
    storage.dedup_ok(&format!("archive create {archive}"));
    let options = format!("{new} --base {archive} --append --day 2026-01-01 --output {root}/h.csv");
    do_rounds(&|| storage.command(), &job, &options, NONE, &mut random);
    let reduce = |is_refused: fn(&Request) -> bool| {
        let (through, _proxy) = storage.through(move |request: &Request| {
            if is_refused(request) {
                Fault::Status {
                    code: 403,
                    body: "<Error><Code>AccessDenied</Code></Error>".into(),
                }
            } else {
                Fault::Pass
            }
        });
        through.dedup(&format!("reduce {job}"))
    };
    let is_marker =
        |request: &Request| request.method == "PUT" && request.path().ends_with("/JOB/done.json");
    let committed = "and the outputs are in place, but the job cannot be marked";
    reduce(is_marker).fails(77, &[committed, "JOB/done.json", "the same command again"]);
    let is_removal = |request: &Request| {
        request.method == "DELETE" || request.method == "POST" && request.target.contains("delete")
    };
    let ran = reduce(is_removal).ok();
    for part in ["the run is done", "work-", "vacuum --jobs"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(storage.list(&job).len() > 2);
    storage.dedup_ok(&format!("reduce {job}"));
    assert_eq!(storage.list(&job), [format!("{job}/done.json")]);
}

/// Documents that were removed after a `reduce` that was killed behind its commit: the rest is what a rerun of `run` gives.
#[test]
fn documents_are_removed_before_a_reduce_is_repeated() {
    let mut random = ChaCha8Rng::seed_from_u64(29);
    let twins = Twins::new(29, "--sketch 128");
    twins.clear();
    let batch = twins.dir.at("data/day.parquet");
    let options = format!(
        "{batch} --base {{}}/archive --append --day 2026-01-31 --decisions {{}}/out/d.csv -k 6"
    );
    let job = twins.dir.at("JOB");
    do_rounds(
        &command,
        &job,
        &twins.options("job", &options),
        NONE,
        &mut random,
    );
    // The commit of another process stands for that of the `reduce`.
    for twin in ["run", "job"] {
        dedup_ok(&format!("run {}", twins.options(twin, &options)));
        fs::remove_file(twins.at(twin, "out/d.csv")).unwrap();
        let ids = twins.at(twin, "ids.txt");
        fs::write(&ids, "new/0000000001\nnew/0000000002\n").unwrap();
        dedup_ok(&format!(
            "archive remove {} --ids {ids}",
            twins.at(twin, "archive")
        ));
    }
    dedup_ok(&format!(
        "run {} --overwrite",
        twins.options("run", &options)
    ));
    dedup_ok(&format!("reduce {job}"));
    twins.same_outputs();
}

/// A job touches nothing but what is its own, and begins anew only if the new run can begin.
#[test]
fn what_is_beside_a_job_stays() {
    let dir = Dir::new();
    for name in ["p/objects", "p/copies", "p/round-1"] {
        fs::create_dir_all(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("mine"), "mine").unwrap();
    }
    let documents = [
        ("a", "one two three four five"),
        ("b", "one two three four five"),
    ];
    write_documents(dir.join("p/copies/a.parquet"), &documents);
    let (job, mut random) = (dir.at("p"), ChaCha8Rng::seed_from_u64(1));
    let options = format!(
        "{} --output {}",
        dir.at("p/copies/a.parquet"),
        dir.at("h.csv")
    );
    do_rounds(&command, &job, &options, NONE, &mut random);
    dedup(&format!("split {job} {options} --restart --append")).fails(64, &["--append needs"]);
    dedup_ok(&format!("reduce {job}"));
    for name in [
        "p/objects/mine",
        "p/copies/mine",
        "p/round-1/mine",
        "p/copies/a.parquet",
        "h.csv",
    ] {
        assert!(dir.join(name).exists(), "{name}");
    }
    // The options of the job are enough to begin anew.
    dedup_ok(&format!("split {job} --restart"));
    dedup(&format!("split {}/p/copies/a.parquet --base x", dir.at("")))
        .fails(64, &["is a file", "the place of the job"]);
    let archive = dir.archive("archive", "--profile paper");
    let options = format!("{} --base {archive}", dir.at("p/copies/a.parquet"));
    let other = dir.archive("other", "");
    for archive in [archive, other] {
        let split = dedup(&format!("split {archive}/job {options}"));
        split.fails(64, &["a place of its own"]);
    }
}

/// A store that does not find the bucket, or the plan of a round, does not say that there is no job.
#[test]
fn what_a_store_does_not_find_is_no_missing_job() {
    let Some(storage) = seaweed() else { return };
    let root = storage.unique("not-found");
    let (job, new) = (format!("{root}/JOB"), format!("{root}/new.jsonl"));
    storage.put(&new, br#"{"id": "a", "text": "one two three"}"#.to_vec());
    storage.dedup_ok(&format!("split {job} {new} --output {root}/h.csv"));
    for (name, error, code, reason) in [
        ("", "NoSuchBucket", 64, "there is no such bucket"),
        (
            "round-1/plan.json",
            "NoSuchKey",
            75,
            "round 1 is not planned",
        ),
    ] {
        let (through, _proxy) = storage.through(move |request: &Request| {
            if request.method == "GET" && request.path().ends_with(name) {
                Fault::Status {
                    code: 404,
                    body: format!("<Error><Code>{error}</Code></Error>"),
                }
            } else {
                Fault::Pass
            }
        });
        let map = through.dedup(&format!("map {job} --part 0"));
        map.fails(code, &[&job, reason]);
    }
    storage.dedup_ok(&format!("map {job} --part 0"));
}

/// Two `reduce` at once: one day is committed, and both succeed.
#[test]
fn two_reduces_at_once() {
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let twins = Twins::new(17, "");
    twins.clear();
    let batch = twins.dir.at("data/day.parquet");
    let options = format!(
        "{batch} --base {{}}/archive --append --day 2026-01-31 --output {{}}/out/h.parquet"
    );
    dedup_ok(&format!("run {}", twins.options("run", &options)));
    let job = twins.dir.at("JOB");
    do_rounds(
        &command,
        &job,
        &twins.options("job", &options),
        NONE,
        &mut random,
    );
    let reduce = format!("reduce {job} --json");
    for child in [0, 1].map(|_| start(command(), &reduce)) {
        Ran::of(child.wait_with_output().unwrap()).ok();
    }
    twins.same_outputs();
    let info = dedup_json(&format!(
        "archive info {} --json",
        twins.at("job", "archive")
    ));
    let run = dedup_json(&format!(
        "archive info {} --json",
        twins.at("run", "archive")
    ));
    assert_eq!(info["rows"], run["rows"]);
}

/// A job, its batch and its archive in a bucket; the store answers 503 now and then, and loses answers.
#[test]
fn a_job_in_a_store() {
    let Some(storage) = seaweed() else { return };
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let twins = Twins::new(19, "--sketch 256 --decisions");
    twins.clear();
    let local = format!(
        "{} --base {{}}/archive --decisions {{}}/out/d.csv --kept {{}}/out/k.parquet -k 8 --verify sketch",
        twins.dir.at("data/day.parquet")
    );
    let run = dedup_json(&format!("run {} --json", twins.options("run", &local)));
    let root = storage.unique("job");
    storage.upload(
        twins.dir.join("data/day.parquet"),
        &format!("{root}/day.parquet"),
    );
    for (name, bytes) in contents_below(twins.dir.join("job/archive")) {
        storage.put(&format!("{root}/archive/{name}"), bytes);
    }
    let options = format!(
        "{root}/day.parquet --base {root}/archive --decisions {root}/d.csv --kept {root}/k.parquet -k 8 --verify sketch --parts 4"
    );
    let (faulty, _proxy) = storage.through(|request: &Request| match request.number % 11 {
        3 => Fault::Status {
            code: 503,
            body: "<Error><Code>SlowDown</Code></Error>".into(),
        },
        7 if request.method == "PUT" => Fault::LoseResponse,
        _ => Fault::Pass,
    });
    let program = |storage: &Storage| {
        let storage = storage.clone();
        move || storage.command()
    };
    let job = format!("{root}/JOB");
    let faulty = program(&faulty);
    do_rounds(&faulty, &job, &options, ALL, &mut random);
    let reduced = ran(&faulty, &format!("reduce {job} --json")).ok().json();
    let decisions = |summary: &Value| {
        let mut decisions = numbers(summary)["decisions"].clone();
        decisions.as_object_mut().unwrap().remove("kept_bytes");
        decisions
    };
    assert_eq!(decisions(&run), decisions(&reduced));
    for (name, object) in [("d.csv", "d.csv"), ("k.parquet", "k.parquet")] {
        let expected = fs::read(twins.dir.join(&format!("run/out/{name}"))).unwrap();
        assert!(
            storage.get(&format!("{root}/{object}")).unwrap() == expected,
            "{name}"
        );
    }
    let left = storage.list(&job);
    assert_eq!(left, [format!("{job}/done.json")]);
}
