//! Tests of removed documents and replaced days, and of reruns afterwards.

use std::fs;
use std::path::Path;

use crate::helpers::days::*;
use crate::helpers::foreign_writer::*;
use crate::helpers::support::*;

const TWO: [&str; 4] = ["b1", "b2", "b3", "b4"];

/// Paths below the archive's directory that name a day.
fn names_of(days: &Days, day: &str) -> Vec<String> {
    let names = contents_below(&days.archive).into_iter();
    let names = names.map(|(name, _)| name);
    names.filter(|name| name.contains(day)).collect()
}

#[test]
fn a_removed_day_is_not_matched_again() {
    let (days, committed) = Days::three();
    let removed = days.maintain("remove", "--day 2026-01-02");
    assert_eq!(removed["removed_fingerprints"], 4);
    assert_eq!(removed["version"], 4);
    days.same_again(&committed[0]);
    let third = days.rerun(&committed[2]);
    assert_eq!(third.hits, without(&committed[2].first.hits, &TWO));
    assert_eq!(third.hits.len(), 2);
    // Neither a new batch nor a rerun of the removed day is compared with the removed documents.
    let next = days.commit(DAYS[3], &[("d1", far(1) ^ 1), ("d2", far(5))]);
    let pairs = next.first.pairs();
    assert_eq!(pairs, [("d1", "a1"), ("d1", "c1"), ("d2", "c2")]);
    let own = days.run(&committed[1].input, "");
    assert!(own.summary["day"].is_null());
    let is_own = |hit: &Hit| TWO.contains(&hit.1.as_str()) && hit.3.is_some();
    assert!(!own.hits.iter().any(is_own));

    // Vacuum deletes the day's files and no others.
    assert!(names_of(&days, DAYS[1]).len() > 2);
    days.maintain("vacuum", "--older-than 0s --nothing-runs");
    let rest = names_of(&days, DAYS[1]);
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(days.info()["fingerprints"], 5 + 4 + 2);

    // If the day is committed again, it is compared with the later days, too; reruns of those stay
    // the same.
    let again = days.commit(DAYS[1], &[("b1", far(1) ^ 1), ("b5", far(6) ^ 1)]);
    let pairs = again.first.pairs();
    assert_eq!(
        pairs,
        [("b1", "d1"), ("b1", "a1"), ("b1", "c1"), ("b5", "c4")]
    );
    for day in [&committed[0], &next, &again] {
        days.same_again(day);
    }
    assert_eq!(days.rerun(&committed[2]).hits, third.hits);
}

#[test]
fn a_day_that_is_not_there_is_nothing_to_remove() {
    let (days, committed) = Days::three();
    days.maintain("remove", "--day 2026-01-03");
    let before = contents(&days.archive);
    for day in ["2026-01-03", "2026-02-01"] {
        let removed = days.maintain("remove", &format!("--day {day}"));
        assert!(removed["version"].is_null());
        let line = format!("archive remove {} --day {day}", days.archive);
        assert!(dedup_ok(&line).stdout.contains("nothing to remove"));
        assert!(contents(&days.archive) == before);
    }
    days.same_again(&committed[1]);
}

#[test]
fn removed_documents_are_not_named_again() {
    let (days, mut committed) = Days::three();
    // `b1` becomes the id of a second document.
    let fourth = [("b1", far(20)), ("d2", far(5) ^ 16), ("d3", far(20) ^ 1)];
    committed.push(days.commit(DAYS[3], &fourth));
    let engine = OtherEngine::new(&days.archive);
    let before = engine.paths();
    // Ids without a document are ignored.
    let ids = days.dir.at("ids.txt");
    fs::write(&ids, "a1\nb1\n\nb3\nc9\n").unwrap();
    let removed = days.maintain("remove", &format!("--ids {ids}"));
    assert_eq!(removed["removed_fingerprints"], 4);
    assert_eq!(removed["days"], 3);
    let ids = ["a1", "b1", "b3"];
    let is_as_removed = || {
        for (day, count) in committed.iter().zip([1, 2, 0, 1]) {
            let again = days.rerun(day);
            assert_eq!(again.hits, without(&day.first.hits, &ids), "{}", day.date);
            assert_eq!(again.summary["removed"], count);
            // The removed documents appear neither if the run recognises the day by its digest, nor
            // in --fingerprints.
            let kept = days.dir.at("kept.parquet");
            let by_digest = days.run(&day.input, &format!("--fingerprints {kept}"));
            assert_eq!(by_digest.summary["day"], day.date);
            assert!(by_digest.bytes == again.bytes);
            let batches = read_parquet(&kept);
            let kept = batches.iter().flat_map(|batch| texts(batch.column(1)));
            assert!(!kept.into_iter().any(|id| ids.contains(&id.as_str())));
        }
    };
    is_as_removed();
    let input = days.write("new", &[("e1", far(1)), ("e2", far(20)), ("e3", far(5))]);
    let pairs = || {
        let hits = days.run(&input, "--day 2026-01-06").hits.into_iter();
        hits.map(|hit| (hit.0, hit.1)).collect::<Vec<_>>()
    };
    let expected = [
        ("e1", "c1"),
        ("e2", "d3"),
        ("e3", "b4"),
        ("e3", "c2"),
        ("e3", "d2"),
    ];
    let expected = expected.map(|(new, base)| (new.to_owned(), base.to_owned()));
    assert_eq!(pairs(), expected);

    // The next vacuum deletes the files that held the removed documents.
    days.maintain("vacuum", "--older-than 0s --nothing-runs");
    let now = engine.paths();
    let gone: Vec<&String> = before.iter().filter(|path| !now.contains(path)).collect();
    assert!(!gone.is_empty());
    for path in gone {
        assert!(!Path::new(&days.archive).join(path).exists(), "{path}");
    }
    // Compaction merges what remains.
    days.maintain("compact", "");
    engine.optimize(Some(DAYS[0]));
    is_as_removed();
    assert_eq!(pairs(), expected);
    assert_eq!(days.info()["fingerprints"], 13 + 3 - 4);
}

#[test]
fn a_day_of_which_all_documents_are_removed_stays_committed() {
    let (days, committed) = Days::three();
    let ids = days.dir.at("ids.jsonl");
    fs::write(
        &ids,
        "\"b1\"\n\"b2\"\n{\"id\":\"b3\",\"text\":\"…\"}\n\"b4\"\n",
    )
    .unwrap();
    let removed = days.maintain("remove", &format!("--ids {ids}"));
    assert_eq!(removed["removed_fingerprints"], 4);
    let again = days.rerun(&committed[1]);
    assert_eq!(again.summary["removed"], 4);
    assert!(again.hits.is_empty());
    assert_eq!(days.rerun(&committed[2]).hits.len(), 2);
    // After the day itself is removed, it can be committed again.
    assert_eq!(days.maintain("remove", "--day 2026-01-02")["version"], 5);
    let anew = days.commit(DAYS[1], &[("b1", far(1) ^ 1)]);
    days.same_again(&anew);
}

#[test]
fn ids_to_remove_are_of_the_archives_type() {
    let dir = Dir::new();
    let (archive, input) = (dir.at("archive"), dir.at("day.parquet"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --id-type bigint"
    ));
    let fingerprints = || numbers([1, 2, 3].map(|n| far(n).cast_signed()));
    let columns = vec![("id", numbers([1, 2, -3])), ("fp", fingerprints())];
    write_parquet(&input, columns);
    dedup_ok(&format!(
        "archive append {archive} --input {input} --day 2026-01-01"
    ));
    let before = contents(&archive);
    for (name, text, parts) in [
        ("ids.txt", "2\nseven\n", ["bigint", "\"seven\""]),
        ("ids.jsonl", "2\n\"1x\"\n", ["bigint", "\"1x\""]),
        ("broken.jsonl", "2\n{\"id\"\n", ["line 2", "EOF"]),
        ("without.jsonl", "{\"no\":1}\n", ["line 1", "\"id\""]),
        ("list.jsonl", "[1]\n", ["line 1", "an id is"]),
    ] {
        let ids = dir.at(name);
        fs::write(&ids, text).unwrap();
        let ran = dedup(&format!("archive remove {archive} --ids {ids}"));
        ran.fails(65, &[name, parts[0], parts[1]]);
        assert!(contents(&archive) == before, "{name}");
    }
    let ids = dir.at("ids.jsonl");
    fs::write(&ids, "{\"id\":-3}\n2\n\"99\"\n").unwrap();
    let remove = format!("archive remove {archive} --ids {ids}");
    assert!(dedup_ok(&remove).stdout.contains("2 fingerprints"));
    let before = contents(&archive);
    assert!(dedup_ok(&remove).stdout.contains("nothing to remove"));
    assert!(contents(&archive) == before);
    let (new, output) = (dir.at("new.parquet"), dir.at("hits.parquet"));
    write_parquet(
        &new,
        vec![("id", numbers([11, 12, 13])), ("fp", fingerprints())],
    );
    dedup_ok(&format!(
        "run --new {new} --base {archive} --output {output}"
    ));
    let hit = ("11".to_owned(), "1".to_owned(), 0, date("2026-01-01"));
    assert_eq!(read_hits(&output), [hit]);
    for options in ["", "--day 2026-01-01 --ids x"] {
        dedup(&format!("archive remove {archive} {options}")).fails(64, &["--day"]);
    }
}

#[test]
fn a_corrected_day_replaces_the_first() {
    let (days, committed) = Days::three();
    let corrected = [("b1", far(3) ^ 1), ("b6", far(6) ^ 1), ("b7", far(6) ^ 3)];
    let input = days.write("corrected", &corrected);
    let append = "--append --day 2026-01-02";
    let replace = format!("{append} --replace-day");
    // A day is not replaced without --replace-day.
    dedup(&days.line(&input, append)).fails(65, &["2026-01-02"]);
    dedup(&days.line(&input, "--replace-day --day 2026-01-02")).fails(64, &["--append"]);
    let first = days.run(&input, &replace);
    assert_eq!(first.summary["commit"]["committed"], 4);
    // The replacement is compared with later days too.
    let pairs = first.pairs();
    assert_eq!(
        pairs,
        [
            ("b1", "a3"),
            ("b1", "c3"),
            ("b6", "c4"),
            ("b7", "b6"),
            ("b7", "c4")
        ]
    );
    assert_eq!(days.info()["days"][DAYS[1]]["fingerprints"], 3);
    let second = Committed {
        date: DAYS[1],
        input,
        first,
    };
    // Committing the same documents again changes nothing, with and without --replace-day.
    let before = contents(&days.archive);
    let again = days.run(&second.input, &replace);
    assert_eq!(again.summary["commit"], "already_there");
    assert!(again.bytes == second.first.bytes && contents(&days.archive) == before);
    days.same_again(&second);
    // Reruns of days committed before the correction compare with neither the old nor the new
    // documents.
    days.same_again(&committed[0]);
    let third = without(&committed[2].first.hits, &TWO);
    assert_eq!(days.rerun(&committed[2]).hits, third);
    // A later day is compared with the new documents only.
    let next = days.commit(
        DAYS[3],
        &[("d1", far(2) ^ 2), ("d2", far(5)), ("d3", far(6) ^ 1)],
    );
    let pairs = next.first.pairs();
    assert_eq!(
        pairs,
        [
            ("d1", "a2"),
            ("d2", "c2"),
            ("d3", "b6"),
            ("d3", "b7"),
            ("d3", "c4")
        ]
    );
    days.same_again(&next);
    // --replace-day commits the first documents again, as new ones.
    let back = days.run(&committed[1].input, &replace);
    assert!(back.summary["commit"]["committed"].is_u64());
    let is_later = |hit: &Hit| hit.0 == "b3" && hit.1 == "d2";
    assert!(back.hits.iter().any(is_later));
    let corrected = ["b1", "b6", "b7"];
    let fourth = without(&next.first.hits, &corrected);
    assert_eq!(days.rerun(&next).hits, fourth);
    assert_eq!(days.rerun(&committed[2]).hits, third);
    // Vacuum deletes the files of both replaced days.
    days.maintain("vacuum", "--older-than 0s --nothing-runs");
    assert_eq!(days.rerun(&committed[1]).hits, back.hits);
    days.info();
}

#[test]
fn a_day_that_is_not_there_is_committed_by_replace_day() {
    let (days, _) = Days::three();
    let input = days.write("day", &[("d1", far(1))]);
    let first = days.run(&input, "--append --replace-day --day 2026-01-04");
    assert_eq!(first.summary["commit"]["committed"], 4);
    assert_eq!(first.hits.len(), 3);
    let date = DAYS[3];
    days.same_again(&Committed { date, input, first });
}

#[test]
fn ids_that_no_document_has_are_named() {
    let dir = Dir::new();
    let (archive, new, ids) = (dir.at("archive"), dir.at("n.csv"), dir.at("ids.txt"));
    dedup_ok(&format!("archive create {archive} --profile paper"));
    fs::write(&new, "id,fp\na,1\nb,2\n").unwrap();
    dedup_ok(&format!(
        "archive append {archive} --input {new} --day 2026-01-01"
    ));
    let missing: Vec<String> = (10..23).map(|number| format!("none{number}")).collect();
    fs::write(&ids, format!("{}\na\n", missing.join("\n"))).unwrap();
    let remove = format!("archive remove {archive} --ids {ids}");
    let text = dedup_ok(&remove).stdout;
    assert!(text.contains("1 of 14 ids were found"), "{text}");
    assert!(
        text.contains("none10, none11") && text.contains("none19 and 3 more"),
        "{text}"
    );
    let json = dedup_json(&format!("{remove} --json"));
    assert_eq!(json["ids_not_found"], 14);
    assert_eq!(json["first_ids_not_found"][0], "a");
}
