//! Tests of days after another engine rewrote, deleted or added rows. Fault numbers are those of
//! docs/faults.md.

use std::fs;

use crate::helpers::days::*;
use crate::helpers::foreign_writer::*;
use crate::helpers::support::*;

/// The ids of the documents that new ones are near to.
fn bases(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.1.as_str()).collect()
}

/// Fault 38: another engine rewrites the files of days; reruns give the same pairs.
#[test]
fn days_are_the_same_after_anforeign_writers_optimize() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    let rows = days.info()["fingerprints"].clone();
    for day in [DAYS[0], DAYS[1]] {
        engine.optimize(Some(day));
        for day in &committed {
            days.same_again(day);
        }
    }
    // The other engine rewrites a day once more, and dedup-job compacts the third day.
    engine.optimize(Some(DAYS[0]));
    days.maintain("compact", "");
    for day in &committed {
        days.same_again(day);
    }
    assert_eq!(days.info()["fingerprints"], rows);
    // The log still tells which rows a day had, although the files no longer do.
    let before = contents(&days.archive);
    for day in &committed {
        let changed = days.write("changed", &[("a1", far(1)), ("a9", far(9))]);
        let line = days.line(&changed, &format!("--append --day {}", day.date));
        let digest = day.first.summary["new"]["digest"].as_str().unwrap();
        dedup(&line).fails(65, &[day.date, digest]);
    }
    assert!(contents(&days.archive) == before);
    // A later day is compared with all three days.
    let next = days.commit(DAYS[3], &[("d1", far(1) ^ 32)]);
    assert_eq!(bases(&next.first), ["a1", "b1", "c1"]);
}

/// Fault 38: another engine merges, into one file, rows that a day was compared with and rows that
/// came later. Reruns of that day are refused.
#[test]
fn rows_that_cannot_be_told_apart_any_more_are_no_silent_change() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    // Merges rows that the second day was compared with, and a row that came after it.
    engine.append(Some(DAYS[0]), &[("x1", far(1) ^ 64)]);
    engine.optimize(Some(DAYS[0]));
    days.same_again(&committed[0]);
    let output = days.dir.join("hits.parquet");
    let (before, archived) = (fs::read(&output).unwrap(), contents(&days.archive));
    for day in &committed[1..] {
        for options in ["--append", ""] {
            let line = days.line(&day.input, &format!("{options} --day {}", day.date));
            dedup(&line).fails(78, &[day.date, "another program changed"]);
        }
    }
    assert!(fs::read(&output).unwrap() == before && contents(&days.archive) == archived);
    // A new day is compared with all rows, and its rerun gives the same.
    let next = days.commit(DAYS[3], &[("d1", far(1) ^ 32)]);
    assert_eq!(bases(&next.first), ["a1", "b1", "c1", "x1"]);
    engine.optimize(Some(DAYS[0]));
    days.same_again(&next);
}

/// Fault 39: another engine adds rows to a day, and rows without a day.
#[test]
fn rows_of_anforeign_writer_are_compared_as_any_that_came_first() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    engine.append(Some(DAYS[0]), &[("x1", far(1) ^ 64)]);
    engine.append(None, &[("y1", far(5) ^ 64), ("y2", far(30))]);
    // Reruns of earlier days are not compared with the added rows.
    for day in &committed {
        days.same_again(day);
    }
    let next = days.commit(DAYS[3], &[("d1", far(1) ^ 65), ("d2", far(5) ^ 66)]);
    let hit = |new: &str, base: &str, day| (new.to_owned(), base.to_owned(), 1, day);
    for expected in [hit("d1", "x1", date(DAYS[0])), hit("d2", "y1", None)] {
        assert!(next.first.hits.contains(&expected), "{expected:?}");
    }
    engine.append(None, &[("y3", far(1) ^ 65)]);
    for day in committed.iter().chain([&next]) {
        days.same_again(day);
    }
    // One rewrite merges all rows without a day; all came before the fifth day.
    engine.optimize(None);
    let last = days.commit(DAYS[4], &[("e1", far(30)), ("e2", far(1) ^ 65)]);
    for base in ["y2", "y3", "x1", "d1"] {
        let is_found = last.first.hits.iter().any(|hit| hit.1 == base);
        assert!(is_found, "{base}");
    }
    engine.optimize(None);
    engine.optimize(Some(DAYS[0]));
    days.same_again(&last);
    assert_eq!(days.info()["fingerprints"], 13 + 4 + 4);
}

/// Fault 39: another engine deletes documents.
#[test]
fn rows_that_anforeign_writer_deletes_are_not_matched_again() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    let deleted = ["a1", "a4", "b3"];
    engine.delete(&deleted);
    for (day, removed) in committed.iter().zip([2, 1, 0]) {
        let again = days.rerun(day);
        assert_eq!(again.hits, without(&day.first.hits, &deleted));
        assert_ne!(again.hits, day.first.hits);
        assert_eq!(again.summary["removed"], removed);
    }
    days.maintain("compact", "");
    engine.optimize(Some(DAYS[0]));
    for day in &committed {
        assert_eq!(days.rerun(day).hits, without(&day.first.hits, &deleted));
    }
    let input = days.write("new", &[("d1", far(1)), ("d4", far(4))]);
    assert_eq!(bases(&days.run(&input, "")), ["b1", "c1", "a5"]);
}

/// Fault 39: a day whose rows another engine wrote is replaced only with `--replace-day`.
#[test]
fn a_day_that_anforeign_writer_wrote_is_not_appended_to() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    engine.append(Some(DAYS[3]), &[("z1", far(9)), ("z2", far(10))]);
    let input = days.write("day", &[("d1", far(9) ^ 1), ("d2", far(1) ^ 32)]);
    let output = days.dir.join("hits.parquet");
    let (before, archived) = (fs::read(&output).unwrap(), contents(&days.archive));
    let append = format!("--append --day {}", DAYS[3]);
    for line in [
        days.line(&input, &append),
        format!(
            "archive append {} --input {input} --day {}",
            days.archive, DAYS[3]
        ),
    ] {
        dedup(&line).fails(78, &[DAYS[3], "--replace-day"]);
        assert!(fs::read(&output).unwrap() == before && contents(&days.archive) == archived);
    }
    let first = days.run(&input, &format!("{append} --replace-day"));
    assert!(first.summary["commit"]["committed"].is_u64());
    assert_eq!(bases(&first), ["a1", "b1", "c1"]);
    assert_eq!(days.info()["days"][DAYS[3]]["fingerprints"], 2);
    let date = DAYS[3];
    days.same_again(&Committed { date, input, first });
    for day in &committed {
        days.same_again(day);
    }
    let next = days.commit(DAYS[4], &[("e1", far(9)), ("e2", far(10))]);
    assert_eq!(bases(&next.first), ["d1"]);
}
