//! `dedup-job groups`: groups over several days, and components of pairs.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use crate::helpers::support::*;

/// Writes decisions of two days. The groups of `a` and `b` begin on the first day; that of `b`
/// grows on the second, which also has a duplicate of an older document.
fn prepared() -> Dir {
    let dir = Dir::new();
    let header = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n";
    let days = [
        "a,true,,,,,3\na1,false,a,2026-01-01,1,,3\na2,false,a,2026-01-01,2,,3\nb,true,,,,,1\nc,true,,,,,1\n",
        "b,false,b,2026-01-01,0,,2\nd,true,,,,,1\ne,false,old,2025-12-31,3,,3\nf,false,old,2025-12-31,3,,3\n",
    ];
    for (name, rows) in ["1.csv", "2.csv"].into_iter().zip(days) {
        fs::write(dir.join(name), format!("{header}{rows}")).unwrap();
    }
    dir
}

#[test]
fn groups_grow_from_day_to_day() {
    let dir = prepared();
    let found = dedup_json(&format!(
        "groups {} {} --json",
        dir.at("1.csv"),
        dir.at("2.csv")
    ));
    assert_eq!(found["documents"], 9);
    assert_eq!(found["kept"], 4);
    assert_eq!(found["duplicates_within"], 2);
    assert_eq!(found["duplicates_of_earlier"], 3);
    assert_eq!(
        (&found["groups"], &found["groups_without_kept"]),
        (&5.into(), &1.into())
    );
    assert_eq!(
        found["sizes"],
        json!([{"up_to": 1, "groups": 2}, {"up_to": 2, "groups": 1}, {"up_to": 4, "groups": 2}])
    );
    assert_eq!(
        found["largest"],
        json!([
            {"id": "old", "day": "2025-12-31", "documents": 3},
            {"id": "a", "day": "2026-01-01", "documents": 3},
            {"id": "b", "day": "2026-01-01", "documents": 2},
        ])
    );
    let largest: Vec<u64> = (0..2)
        .map(|day: usize| found["days"][day]["largest_group"].as_u64().unwrap())
        .collect();
    assert_eq!(largest, [3, 3]);
    let text = dedup_ok(&format!("groups {} -n 1", dir.at("*.csv"))).stdout;
    assert!(
        text.starts_with(
            "9 documents in 2 files: 4 kept, 3 duplicates of earlier days, 2 duplicates within"
        ),
        "{text}"
    );
    assert!(
        text.contains("2025-12-31  old\n") && !text.contains("2026-01-01  a\n"),
        "{text}"
    );
    // The day of a file without duplicates within the batch is not known, so its kept documents are
    // found by id alone.
    let alone = dir.at("alone.csv");
    let header = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n";
    fs::write(&alone, format!("{header}old,true,,,,,1\n")).unwrap();
    let found = dedup_json(&format!("groups {alone} {} --json", dir.at("2.csv")));
    assert_eq!(found["groups_without_kept"], 1, "b alone: {found}");
    // In an archive without decisions, a document may be a duplicate of another duplicate.
    let days = [
        "a,true,,,,,1\nx,true,,,,,2\nx1,false,x,2026-01-01,0,,2\n",
        "b,false,a,2026-01-01,1,,2\ny,true,,,,,2\ny1,false,y,2026-01-02,0,,2\n",
        "c,false,b,2026-01-02,1,,2\n",
    ];
    for (number, rows) in days.into_iter().enumerate() {
        fs::write(
            dir.join(&format!("plain-{number}.csv")),
            format!("{header}{rows}"),
        )
        .unwrap();
    }
    let found = dedup_json(&format!("groups {} --json", dir.at("plain-*.csv")));
    assert_eq!(
        (&found["groups"], &found["groups_without_kept"]),
        (&4.into(), &1.into()),
        "{found}"
    );
    assert_eq!(
        found["sizes"],
        json!([{"up_to": 1, "groups": 0}, {"up_to": 2, "groups": 4}])
    );
    // `groups` refuses values that no output has.
    for (row, part) in [
        ("a,false,b,,65,,2", "a distance of 65 bits"),
        ("a,false,b,,1,NaN,2", "a similarity of NaN"),
        ("a,false,b,,1,1.5,2", "a similarity of 1.5"),
        ("a,true,,,,,0", "a group of 0 documents"),
    ] {
        fs::write(dir.join("bad.csv"), format!("{header}{row}\n")).unwrap();
        dedup(&format!("groups {}", dir.at("bad.csv"))).fails(65, &["bad.csv", "row 1", part]);
    }
    // The empty id is an id, in CSV, too.
    fs::write(dir.join("bad.csv"), format!("{header}a,false,,,1,,2\n")).unwrap();
    let found = dedup_json(&format!("groups {} --json", dir.at("bad.csv")));
    assert_eq!((&found["kept"], &found["groups"]), (&0.into(), &1.into()));
}

#[test]
fn groups_of_real_days_are_those_of_their_decisions() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 500 --base 900 --days 3"
    ));
    let archive = dir.archive("archive", "--profile paper --decisions");
    // Both days have the same pages, so that every page of the second day is a duplicate.
    let mut expected: BTreeMap<(i32, String), u64> = BTreeMap::new();
    for day in ["2026-01-01", "2026-01-02"] {
        let output = dir.at(&format!("{day}.parquet"));
        dedup_ok(&format!(
            "run {data}/day.parquet --base {archive} --append --day {day} --decisions {output}"
        ));
        for row in crate::decisions::read_decisions(&output) {
            let own = crate::decisions::days_since_epoch(day);
            let group = match row.duplicate_of {
                Some(of) => (row.day.unwrap(), of),
                None => (own, row.id),
            };
            *expected.entry(group).or_default() += 1;
        }
    }
    let found = dedup_json(&format!(
        "groups {} --json -n 1000",
        dir.at("2026-*.parquet")
    ));
    assert_eq!(found["groups"].as_u64().unwrap(), expected.len() as u64);
    assert_eq!(found["documents"], 1000);
    assert_eq!(found["groups_without_kept"], 0);
    for group in found["largest"].as_array().unwrap() {
        let id = group["id"].as_str().unwrap().to_owned();
        let day = crate::decisions::days_since_epoch(group["day"].as_str().unwrap());
        assert_eq!(group["documents"], expected[&(day, id)], "{group}");
    }
    let of_several = expected
        .values()
        .filter(|&&documents| documents > 1)
        .count();
    assert_eq!(found["largest"].as_array().unwrap().len(), of_several);
}

#[test]
fn components_chain_pairs_and_say_so() {
    let dir = Dir::new();
    // A chain: each document is near only its neighbours, so that every other document is kept.
    let rows: Vec<(String, u64)> = (0..60)
        .map(|number: u32| (format!("{number:02}"), !0_u64 >> (63 - number)))
        .collect();
    let (new, decisions, pairs) = (dir.at("new.parquet"), dir.at("d.csv"), dir.at("p.csv"));
    write_fingerprints(&new, &rows);
    dedup_ok(&format!(
        "run {new} -k 1 --decisions {decisions} -o {pairs}"
    ));
    let components = dir.at("components.csv");
    let run = format!("groups {decisions} --pairs {pairs} --components {components}");
    let ran = dedup_ok(&run);
    assert!(
        ran.stdout.contains(
            "largest component: 00 (documents: 60, groups: 30, documents of its largest group: 2)"
        ),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("warning: 1 component is ten times as large"),
        "{}",
        ran.stdout
    );
    let text = fs::read_to_string(&components).unwrap();
    assert_eq!(text.lines().next(), Some("id,component,component_size"));
    assert!(
        text.lines().skip(1).all(|line| line.ends_with(",00,60")),
        "{text}"
    );
    assert_eq!(text.lines().count(), 61);
    let found = dedup_json(&format!("{run} --json"));
    assert_eq!(found["components"]["suspicious"], 1);
    // A group counts its documents in all files, and its kept document even if that is in none of
    // them.
    let header = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n";
    for day in 1..=30 {
        let row = format!("d{day:02},false,old,2025-12-31,1,,2\n");
        fs::write(
            dir.join(&format!("day-{day:02}.csv")),
            format!("{header}{row}"),
        )
        .unwrap();
    }
    let rows: String = (1..=30)
        .map(|day| format!("d{day:02},old,1,2025-12-31\n"))
        .collect();
    fs::write(
        dir.join("days.csv"),
        format!("new_id,base_id,distance,base_day\n{rows}"),
    )
    .unwrap();
    let line = format!(
        "groups {} --pairs {} --components {components}",
        dir.at("day-*.csv"),
        dir.at("days.csv")
    );
    let ran = dedup_ok(&line);
    assert!(
        ran.stdout
            .contains("(documents: 30, groups: 1, documents of its largest group: 31)"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("warning"), "{}", ran.stdout);
    dedup(&format!(
        "groups {decisions} --pairs {pairs} --components -"
    ))
    .fails(64, &["--components -"]);
    // An empty day of JSON Lines does not say its kind.
    fs::write(dir.join("empty.jsonl"), "").unwrap();
    dedup_ok(&format!("groups {decisions} {}", dir.at("empty.jsonl")));
    // `groups` replaces its own output, but no other file.
    dedup(&format!(
        "groups {decisions} --pairs {pairs} --components {pairs}"
    ))
    .fails(64, &["which is read"]);
    dedup(&format!("groups {pairs}")).fails(65, &["p.csv", "pairs, not decisions"]);
    dedup(&format!(
        "groups {decisions} --pairs {decisions} --components {components}"
    ))
    .fails(65, &["d.csv", "decisions, not pairs"]);
    dedup(&format!("groups {decisions} --components {components}")).fails(64, &["--pairs"]);
    dedup("groups").fails(64, &["decisions are missing"]);
    dedup(&format!("groups {}", dir.at("none.csv"))).fails(64, &["none.csv"]);
}

/// The decisions are sorted by id, so a duplicate may come before its kept document.
#[test]
fn a_kept_document_after_its_duplicates_counts_once() {
    let dir = Dir::new();
    let (decisions, pairs) = (dir.at("d.csv"), dir.at("p.csv"));
    fs::write(
        &decisions,
        "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n\
         a,false,z,,1,,3\nb,false,z,,2,,3\nz,true,,,,,3\n",
    )
    .unwrap();
    let rows = "a,z,1,\nb,z,2,\n";
    fs::write(&pairs, format!("new_id,base_id,distance,base_day\n{rows}")).unwrap();
    let components = dir.at("components.csv");
    let line = format!("groups {decisions} --pairs {pairs} --components {components} --json");
    let found = dedup_json(&line);
    assert_eq!(
        found["components"]["largest"],
        json!({"component": "a", "documents": 3, "groups": 1, "largest_group": 3})
    );
}
