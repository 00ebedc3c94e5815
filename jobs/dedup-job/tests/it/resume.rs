//! Tests of `--resume`: a stopped run goes on where it stopped.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::helpers::support::*;

/// Input files. Two files make a chunk, because two threads read them.
const FILES: usize = 8;

/// Writes a file of documents; some are copies of documents in other files.
fn write_pages(dir: &Dir, file: usize, salt: usize) {
    let line = |number: usize| {
        let page = if number.is_multiple_of(7) {
            number
        } else {
            number * FILES + file
        };
        let words: Vec<String> = (0..300)
            .map(|at| format!("w{}", (at * 7919 + page * 104_729 + salt) % 20_011))
            .collect();
        format!(
            "{{\"id\":\"{file}/{number}\",\"text\":\"{}\",\"n\":{number}}}\n",
            words.join(" ")
        )
    };
    // The file is larger than the smallest chunk.
    let lines: String = (0..6000).map(line).collect();
    assert!(lines.len() > 9 << 20, "{}", lines.len());
    fs::write(dir.join(&format!("in/{file}.jsonl")), lines).unwrap();
}

fn chunks(dir: &Dir) -> Vec<PathBuf> {
    // --resume makes a directory per batch below the given one.
    let below = |path: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let batches = below(dir.join("resume")).into_iter();
    let files = batches.filter(|path| path.is_dir()).flat_map(below);
    files
        .filter(|path| path.extension() == Some("arrow".as_ref()))
        .collect()
}

/// Starts a run, and kills it once there are `least` chunks.
fn killed(dir: &Dir, line: &str, least: usize) {
    let mut run = start_unheard(command(), line);
    let begin = Instant::now();
    while chunks(dir).len() < least && run.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = run.kill();
    run.wait().unwrap();
}

/// How many chunks a run says it found.
fn found(ran: &Ran) -> usize {
    let Some((before, _)) = ran.stderr.split_once(" chunks are fingerprinted already") else {
        return 0;
    };
    let said = before.rsplit(": ").next().unwrap();
    let (number, of) = said.split_once(" of ").unwrap();
    assert!(of.parse::<usize>().unwrap() <= FILES / 2, "{}", ran.stderr);
    number.parse().unwrap()
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    (0..FILES).for_each(|file| write_pages(&dir, file, 0));
    let (new, resume) = (dir.at("in"), dir.at("resume"));
    let (expected, output) = (dir.at("expected.parquet"), dir.at("decisions.parquet"));
    let line = format!(
        "run {new} --resume {resume} --decisions {output} --kept {}",
        dir.at("kept/")
    );
    let line = format!("{line} --threads 2 --json");
    killed(&dir, &line, 3);
    let all = chunks(&dir);
    assert!(all.len() >= 3 && !dir.join("decisions.parquet").exists());
    // The rerun makes a damaged chunk again, one that has the file of another, and the chunk of a changed file.
    fs::copy(&all[2], &all[1]).unwrap();
    let damaged = all[0].clone();
    let mut bytes = fs::read(&damaged).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    write_pages(&dir, FILES - 1, 1);
    // The rerun removes a draft that a killed run left.
    let draft = damaged.with_file_name(".tmpXXXXXX");
    fs::write(&draft, "half a chunk").unwrap();
    let alone = dedup_ok(&format!("run {new} --decisions {expected} --json"));
    let ran = dedup_ok(&line);
    assert_eq!(ran.json()["new"], alone.json()["new"]);
    assert!(!draft.exists());
    assert!((1..FILES / 2).contains(&found(&ran)), "{}", ran.stderr);
    assert!(fs::read(&output).unwrap() == fs::read(&expected).unwrap());
    // The successful run removed its chunks.
    assert!(!dir.join("resume").exists());
    // Chunks are of no use to another spec, which makes other fingerprints, or to another --prefer.
    fs::remove_dir_all(dir.join("kept")).unwrap();
    killed(&dir, &line, 1);
    let other = dedup_ok(&format!(
        "run {new} --resume {resume} --decisions {output} --weight tf"
    ));
    assert_eq!(found(&other), 0, "{}", other.stderr);
    killed(&dir, &line, 1);
    let other = dedup_ok(&format!(
        "run {new} --resume {resume} --decisions {output} --prefer n"
    ));
    assert_eq!(found(&other), 0, "{}", other.stderr);
    assert!(fs::read(&output).unwrap() != fs::read(&expected).unwrap());
}

#[test]
fn ids_by_file_and_row_are_those_of_all_files() {
    let dir = Dir::new();
    fs::create_dir_all(dir.join("in/x")).unwrap();
    for file in 0..FILES {
        write_pages(&dir, file, 0);
        let text = fs::read_to_string(dir.join(&format!("in/{file}.jsonl"))).unwrap();
        fs::remove_file(dir.join(&format!("in/{file}.jsonl"))).unwrap();
        fs::write(
            dir.join(&format!("in/x/{file}.jsonl")),
            text.replace("\"id\"", "\"name\""),
        )
        .unwrap();
    }
    let output = dir.at("o.csv");
    let line = format!(
        "run {} --resume {} --threads 2 --decisions {output}",
        dir.at("in"),
        dir.at("resume")
    );
    killed(&dir, &line, 1);
    // A new directory changes the ids by file and row: they begin with the path below the common
    // directory.
    fs::create_dir(dir.join("in/y")).unwrap();
    fs::write(
        dir.join("in/y/z.jsonl"),
        "{\"text\":\"one two three four five six\"}\n",
    )
    .unwrap();
    dedup_ok(&line);
    let text = fs::read_to_string(&output).unwrap();
    assert!(
        text.lines()
            .skip(1)
            .all(|line| line.starts_with("x/") || line.starts_with("y/"))
    );
}

#[test]
fn an_empty_batch_can_be_resumed() {
    let dir = Dir::new();
    let (new, output) = (dir.at("empty.jsonl"), dir.at("o.csv"));
    fs::write(&new, "").unwrap();
    dedup_ok(&format!(
        "run {new} --resume {} --decisions {output}",
        dir.at("resume")
    ));
    assert_eq!(fs::read_to_string(&output).unwrap().lines().count(), 1);
}

#[test]
fn what_is_kept_is_used_by_one_run_at_a_time() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    (0..4).for_each(|file| write_pages(&dir, file, 0));
    fs::create_dir(dir.join("resume")).unwrap();
    fs::write(dir.join("resume/lock"), "of the user").unwrap();
    let run = format!(
        "run {} --resume {} -o {} --threads 2",
        dir.at("in"),
        dir.at("resume"),
        dir.at("o.csv")
    );
    killed(&dir, &run, 1);
    let lock = chunks(&dir)[0].with_file_name("lock");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    dedup(&run).fails(64, &["--resume", "another run"]);
    drop(lock);
    assert!(found(&dedup_ok(&run)) >= 1);
    let lock = dir.join("resume/lock");
    assert_eq!(fs::read_to_string(lock).unwrap(), "of the user");
    let file = dir.at("in/0.jsonl");
    dedup(&format!(
        "run {file} --resume {file} -o {}",
        dir.at("o.csv")
    ))
    .fails(74, &["0.jsonl"]);
}
