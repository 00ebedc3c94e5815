//! Tests of decisions: which documents are kept, which documents the others duplicate, and the
//! copies of the kept documents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, ListArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int32Type, Int64Type};
use parquet::basic::{Compression, GzipLevel};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::helpers::crawl_files::{frame, gzip};
use crate::helpers::support::*;
use crate::verify::{Documents, read_similar};

/// A row of decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub id: String,
    pub kept: bool,
    pub duplicate_of: Option<String>,
    pub day: Option<i32>,
    pub distance: Option<i32>,
    pub similarity: Option<f64>,
    pub group_size: i64,
}

pub fn read_decisions(path: impl AsRef<Path>) -> Vec<Decision> {
    let mut rows = Vec::new();
    for batch in read_parquet(path) {
        let schema = batch.schema();
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let names = names.join(",");
        assert_eq!(
            // Decisions against an archive say which documents are updates, too.
            names
                .strip_suffix(",update_of,update_day")
                .unwrap_or(&names),
            "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size"
        );
        let column = |name| batch.column_by_name(name).unwrap();
        let others = arrow::compute::cast(column("duplicate_of"), &DataType::Utf8).unwrap();
        let (ids, others) = (texts(column("id")), others.as_string::<i32>());
        let kept = column("kept").as_boolean();
        let days = column("duplicate_day").as_primitive::<Date32Type>();
        let distances = column("distance").as_primitive::<Int32Type>();
        let similarities = column("similarity").as_primitive::<Float64Type>();
        let sizes = column("group_size").as_primitive::<Int64Type>();
        for (row, id) in ids.into_iter().enumerate() {
            assert_eq!(kept.value(row), column("duplicate_of").is_null(row), "{id}");
            rows.push(Decision {
                id,
                kept: kept.value(row),
                duplicate_of: (!kept.value(row)).then(|| others.value(row).to_owned()),
                day: days.is_valid(row).then(|| days.value(row)),
                distance: distances.is_valid(row).then(|| distances.value(row)),
                similarity: similarities.is_valid(row).then(|| similarities.value(row)),
                group_size: sizes.value(row),
            });
        }
    }
    rows
}

/// A date in days since 1970.
pub fn days_since_epoch(day: &str) -> i32 {
    let day: chrono::NaiveDate = day.parse().unwrap();
    day.signed_duration_since(chrono::NaiveDate::default())
        .num_days() as i32
}

/// A document with a ready fingerprint.
#[derive(Debug, Clone)]
pub struct Document {
    pub id: String,
    pub fingerprint: Option<u64>,
    pub score: Option<f64>,
}

/// Documents of the archive: day, id and fingerprint.
pub type Archived = Vec<(i32, String, u64)>;

/// What a document is a duplicate of: `Ok` is a place in the batch, `Err` the day and id of an
/// archived document.
pub type Original = Result<usize, (i32, String)>;

/// The decisions by the definition, in a double loop. `batch` is in the order of the inputs;
/// `order` puts preferred documents first.
pub fn by_definition(
    archive: &Archived,
    batch: &[Document],
    day: Option<i32>,
    k: u32,
    order: impl Fn(&Document, &Document) -> std::cmp::Ordering,
) -> Vec<Decision> {
    let mut places: Vec<usize> = (0..batch.len()).collect();
    places.sort_by(|a, b| {
        let (one, other) = (&batch[*a], &batch[*b]);
        order(one, other)
            .then_with(|| one.id.cmp(&other.id))
            .then(a.cmp(b))
    });
    let near = |a: Option<u64>, b: Option<u64>| {
        let distance = (a? ^ b?).count_ones();
        (distance <= k).then_some(distance.cast_signed())
    };
    // For each duplicate: its distance to the original, and the original.
    let mut of: HashMap<usize, (i32, Original)> = HashMap::new();
    let mut kept: Vec<usize> = Vec::new();
    for &place in &places {
        let own = batch[place].fingerprint;
        // Documents with equal fingerprints share a decision, made at the place of the first.
        let is_equal = |other: &&usize| own.is_some() && batch[**other].fingerprint == own;
        let first = *places.iter().find(is_equal).unwrap_or(&place);
        if first != place {
            let decided = of.get(&first).cloned();
            of.insert(place, decided.unwrap_or((0, Ok(first))));
            continue;
        }
        let archived = archive.iter().filter_map(|(day, id, fingerprint)| {
            Some((near(own, Some(*fingerprint))?, *day, id.clone()))
        });
        let within = kept
            .iter()
            .enumerate()
            .filter_map(|(rank, &other)| Some((near(own, batch[other].fingerprint)?, rank, other)));
        if let Some((distance, day, id)) = archived.min() {
            of.insert(place, (distance, Err((day, id))));
        } else if let Some((distance, _, other)) = within.min() {
            of.insert(place, (distance, Ok(other)));
        } else {
            kept.push(place);
        }
    }
    let size = |place: usize| {
        let group = of.get(&place).map_or(Ok(place), |(_, of)| of.clone());
        1 + of.values().filter(|(_, other)| *other == group).count() as i64
    };
    let mut rows: Vec<(usize, Decision)> = (0..batch.len())
        .map(|place| {
            let duplicate = of.get(&place);
            let decision = Decision {
                id: batch[place].id.clone(),
                kept: duplicate.is_none(),
                duplicate_of: duplicate.map(|(_, of)| match of {
                    Ok(other) => batch[*other].id.clone(),
                    Err((_, id)) => id.clone(),
                }),
                day: duplicate.and_then(|(_, of)| match of {
                    Ok(_) => day,
                    Err((day, _)) => Some(*day),
                }),
                distance: duplicate.map(|(distance, _)| *distance),
                similarity: None,
                group_size: size(place),
            };
            (place, decision)
        })
        .collect();
    rows.sort_by(|(a, one), (b, other)| one.id.cmp(&other.id).then(a.cmp(b)));
    rows.into_iter().map(|(_, row)| row).collect()
}

pub fn write_scored(path: impl AsRef<Path>, documents: &[Document]) {
    let ids = strings(documents.iter().map(|document| &document.id));
    let fingerprints: Int64Array = documents
        .iter()
        .map(|document| document.fingerprint.map(u64::cast_signed))
        .collect();
    let scores: Float64Array = documents.iter().map(|document| document.score).collect();
    write_parquet_in_groups(
        path,
        vec![
            ("id", ids),
            ("fp", Arc::new(fingerprints) as ArrayRef),
            ("score", Arc::new(scores) as ArrayRef),
        ],
        7,
    );
}

/// A random fingerprint near one of a few centres, so that batches of them have many pairs.
pub fn crowded(random: &mut ChaCha8Rng, centres: &[u64]) -> u64 {
    let mut fingerprint = centres[random.random_range(0..centres.len())];
    for _ in 0..random.random_range(0..5) {
        fingerprint ^= 1 << random.random_range(0..64);
    }
    fingerprint
}

const DAYS: [(&str, i32); 2] = [("2026-01-01", 20_454), ("2026-01-02", 20_455)];

#[test]
fn decisions_are_those_of_the_definition() {
    for seed in 0..24 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let dir = Dir::new();
        let k = random.random_range(0..5);
        let centres: Vec<u64> = (0..random.random_range(1..6))
            .map(|_| random.random())
            .collect();
        let mut archived = Archived::new();
        let archive = dir.archive("archive", "--profile paper");
        for (day, number) in DAYS {
            let rows: Vec<(String, u64)> = (0..random.random_range(1..6))
                .map(|at| {
                    (
                        format!("{day}/{at}"),
                        random.random_range(0..2) * crowded(random, &centres),
                    )
                })
                .collect();
            let path = dir.at(&format!("{day}.parquet"));
            write_fingerprints(&path, &rows);
            dedup_ok(&format!(
                "run {path} --base {archive} --append --day {day} -o {}",
                dir.at("x.parquet")
            ));
            archived.extend(
                rows.into_iter()
                    .map(|(id, fingerprint)| (number, id, fingerprint)),
            );
        }
        let batch: Vec<Document> = (0..random.random_range(1..80))
            .map(|_| Document {
                // Some documents share an id.
                id: format!("new/{}", random.random_range(0..60)),
                fingerprint: random.random_bool(0.95).then(|| crowded(random, &centres)),
                score: random
                    .random_bool(0.8)
                    .then(|| f64::from(random.random_range(-3..4))),
            })
            .collect();
        let half = batch.len() / 2;
        fs::create_dir(dir.join("new")).unwrap();
        write_scored(dir.join("new/a.parquet"), &batch[..half]);
        write_scored(dir.join("new/b.parquet"), &batch[half..]);
        let by_score = |sign: f64| {
            move |a: &Document, b: &Document| {
                let key = |document: &Document| {
                    document.score.map_or(f64::INFINITY, |score| sign * score)
                };
                key(a).total_cmp(&key(b))
            }
        };
        let new = dir.at("new/");
        for (options, expected) in [
            (
                format!("--base {archive} --day 2026-01-03"),
                by_definition(&archived, &batch, Some(20_456), k, |_, _| {
                    std::cmp::Ordering::Equal
                }),
            ),
            (
                "--prefer score".to_owned(),
                by_definition(&Archived::new(), &batch, None, k, by_score(1.0)),
            ),
            (
                format!("--base {archive} --prefer score:desc --threads 1"),
                by_definition(&archived, &batch, None, k, by_score(-1.0)),
            ),
        ] {
            let output = dir.at("decisions.parquet");
            let ran = dedup(&format!(
                "run {new} {options} -k {k} --decisions {output} --json"
            ));
            let summary = ran.ok().json();
            let found = read_decisions(&output);
            assert_eq!(found, expected, "{seed}: {options} -k {k}");
            assert!(summary["hits"].is_null() && summary["output"].is_null());
            let counts = &summary["decisions"];
            let kept = expected.iter().filter(|row| row.kept).count();
            let of_archive = |row: &&Decision| {
                row.duplicate_of
                    .as_ref()
                    .is_some_and(|id| !id.starts_with("new/"))
            };
            let of_archive = expected.iter().filter(of_archive).count();
            assert_eq!(counts["kept"], kept);
            assert_eq!(counts["duplicates_of_archive"], of_archive);
            assert_eq!(counts["duplicates_within"], batch.len() - kept - of_archive);
            let largest = expected.iter().map(|row| row.group_size).max();
            assert_eq!(counts["largest_group"], largest.unwrap());
        }
        assert!(!dir.join("hits.parquet").exists());
    }
}

/// Checks two invariants with the fingerprints of the texts: a duplicate has a pair with a kept
/// document, and no two kept documents are a pair.
fn check_invariants(decisions: &[Decision], fingerprints: &BTreeMap<String, Option<u64>>, k: u32) {
    let near = |a: &str, b: &str| {
        let (Some(a), Some(b)) = (fingerprints[a], fingerprints[b]) else {
            return false;
        };
        (a ^ b).count_ones() <= k
    };
    let kept: Vec<&Decision> = decisions.iter().filter(|row| row.kept).collect();
    for (at, one) in kept.iter().enumerate() {
        for other in &kept[at + 1..] {
            assert!(!near(&one.id, &other.id), "{} and {}", one.id, other.id);
        }
    }
    let kept: BTreeSet<&str> = kept.iter().map(|row| row.id.as_str()).collect();
    for row in decisions.iter().filter(|row| !row.kept) {
        let of = row.duplicate_of.as_deref().unwrap();
        assert!(kept.contains(of) && near(&row.id, of), "{} of {of}", row.id);
    }
}

#[test]
fn the_longest_text_is_kept_and_a_rerun_decides_the_same() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 2000 --base 3000 --days 3"
    ));
    let day = format!("{data}/day.parquet");
    let (one, again) = (dir.at("one.parquet"), dir.at("again.parquet"));
    let fingerprints = dir.at("fp.parquet");
    dedup_ok(&format!(
        "run {day} --profile paper --decisions {one} --fingerprints {fingerprints}"
    ));
    let mut by_id: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for batch in read_parquet(&fingerprints) {
        let values = batch
            .column_by_name("fp")
            .unwrap()
            .as_primitive::<Int64Type>();
        for (row, id) in texts(batch.column_by_name("id").unwrap())
            .into_iter()
            .enumerate()
        {
            by_id.insert(
                id,
                values
                    .is_valid(row)
                    .then(|| values.value(row).cast_unsigned()),
            );
        }
    }
    let decisions = read_decisions(&one);
    check_invariants(&decisions, &by_id, 3);
    assert!(decisions.iter().filter(|row| !row.kept).count() > 50);
    let mut lengths: BTreeMap<String, usize> = BTreeMap::new();
    for batch in read_parquet(&day) {
        let pages = texts(batch.column_by_name("text").unwrap());
        let ids = texts(batch.column_by_name("id").unwrap());
        // Words are features.
        let words = |page: &String| page.split_whitespace().count();
        lengths.extend(ids.into_iter().zip(pages.iter().map(words)));
    }
    for row in &decisions {
        if let Some(of) = &row.duplicate_of {
            assert!(lengths[of] >= lengths[&row.id], "{} of {of}", row.id);
        }
    }

    // Against the archive, the output has the same bytes before the commit, with it and after it,
    // for any number of threads.
    let archive = format!("--base {data}/archive --day 2026-02-01");
    let run = |options: &str, output: &str| {
        dedup_json(&format!(
            "run {day} {archive} {options} --decisions {output} --json"
        ))
    };
    let first = run("--threads 1", &one);
    assert!(
        first["decisions"]["duplicates_of_archive"]
            .as_u64()
            .unwrap()
            > 50
    );
    let bytes = fs::read(&one).unwrap();
    for options in ["--append", "--append --threads 2", ""] {
        let summary = run(options, &again);
        assert_eq!(summary["decisions"]["kept"], first["decisions"]["kept"]);
        assert!(fs::read(&again).unwrap() == bytes, "{options}");
    }
    // A run with both outputs writes the same bytes as a run with each alone.
    let (pairs, alone) = (dir.at("pairs.parquet"), dir.at("alone.parquet"));
    dedup_ok(&format!("run {day} {archive} -o {alone}"));
    run(&format!("-o {pairs}"), &again);
    assert!(fs::read(&again).unwrap() == bytes);
    assert!(fs::read(&alone).unwrap() == fs::read(&pairs).unwrap());
}

#[test]
fn duplicates_by_sketch_are_similar() {
    let documents = Documents::make();
    let dir = Dir::new();
    let new = dir.at("new.parquet");
    let all: Vec<(String, String)> = [documents.base, documents.new].concat();
    crate::verify::write(&new, &all);
    let (verified, all) = (dir.at("verified.parquet"), dir.at("all.parquet"));
    let run = format!("run {new} -k 8 --sketch 128");
    let summary = dedup(&format!(
        "{run} --verify sketch --min-similarity 0.7 --decisions {verified} --json"
    ));
    let summary = summary.ok().json();
    assert!(summary["verified"]["checked"].as_u64().unwrap() > 0);
    dedup_ok(&format!("{run} --verify none --decisions {all}"));
    let (verified, all) = (read_decisions(&verified), read_decisions(&all));
    let similarities: Vec<f64> = verified.iter().filter_map(|row| row.similarity).collect();
    assert!(similarities.len() > 5, "{similarities:?}");
    assert!(similarities.iter().all(|&similarity| similarity >= 0.7));
    let kept = |rows: &[Decision]| rows.iter().filter(|row| row.kept).count();
    assert!(kept(&verified) >= kept(&all));
    assert!(all.iter().all(|row| row.similarity.is_some() != row.kept));
}

#[test]
fn equal_pages_make_no_pairs() {
    let dir = Dir::new();
    let ids: Vec<String> = (0..200_000)
        .map(|number| format!("page/{number:06}"))
        .collect();
    let rows: Vec<(String, u64)> = ids.into_iter().map(|id| (id, 7)).collect();
    let (new, output) = (dir.at("new.parquet"), dir.at("decisions.csv"));
    write_fingerprints(&new, &rows);
    let summary = dedup_json(&format!("run {new} --decisions {output} --json"));
    assert_eq!(summary["decisions"]["kept"], 1);
    assert_eq!(summary["decisions"]["largest_group"], 200_000);
    let text = fs::read_to_string(&output).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next().unwrap(),
        "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size"
    );
    assert_eq!(lines.next().unwrap(), "page/000000,true,,,,,200000");
    assert_eq!(
        lines.next().unwrap(),
        "page/000001,false,page/000000,,0,,200000"
    );
    // A run replaces an earlier output of the same kind, but not one of another kind.
    dedup_ok(&format!("run {new} --decisions {output}"));
    dedup(&format!("run {new} -o {output}")).fails(64, &["rows of another kind"]);
}

/// A text of 200 words.
fn text(number: usize) -> String {
    let words = (0..200).map(|at| format!("w{}", (at * 7919 + number * 104_729) % 10_007));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn kept_rows_of_text_are_copied_as_they_stand() {
    let compressed = |name: &str, bytes: &[u8]| -> Vec<u8> {
        if name.ends_with(".gz") {
            gzip(bytes)
        } else if name.ends_with(".zst") {
            frame(bytes)
        } else {
            bytes.to_vec()
        }
    };
    let plain = |name: &str, bytes: Vec<u8>| -> Vec<u8> {
        let mut read = Vec::new();
        if name.ends_with(".gz") {
            flate2::read::MultiGzDecoder::new(&bytes[..])
                .read_to_end(&mut read)
                .unwrap();
            return read;
        }
        if name.ends_with(".zst") {
            zstd::decode_all(&bytes[..]).unwrap()
        } else {
            bytes
        }
    };
    // The JSON Lines have fields in any order, blank lines, bytes that are not UTF-8, and a last
    // line without a line end, which the copy adds.
    let mut json: Vec<u8> = Vec::new();
    let mut kept_json: Vec<u8> = Vec::new();
    // The CSV file has quotes, and line ends in fields.
    let header = "url,id,\"text\",note\r\n";
    let (mut csv, mut kept_csv) = (header.to_owned(), header.to_owned());
    for number in 0..60 {
        let copy = if number % 3 == 2 { number - 1 } else { number };
        let more = if number == copy { " and more" } else { "" };
        let line = format!(
            "{{\"x\":[{number},{{\"y\":null}}],\"text\":\"{}{more}\",  \"id\":\"{number:02}\"}}\n",
            text(copy)
        );
        let record = format!(
            "u{number},{number:02},\"{}\r\n{more}\",\"a \"\"b\"\"\"\r\n",
            text(copy)
        );
        json.extend(line.as_bytes());
        json.extend(b"\n");
        csv.push_str(&record);
        if number == copy {
            kept_json.extend(line.as_bytes());
            kept_csv.push_str(&record);
        }
    }
    json.extend(b"{\"id\":\"99\",\"text\":\"\xff\"}");
    kept_json.extend(b"{\"id\":\"99\",\"text\":\"\xff\"}\n");
    let dir = Dir::new();
    for name in [
        "d.jsonl",
        "d.jsonl.gz",
        "d.ndjson.zst",
        "d.csv",
        "d.csv.gz",
        "d.csv.zst",
    ] {
        let (bytes, expected) = if name.contains("json") {
            (&json, &kept_json)
        } else {
            (&csv.clone().into_bytes(), &kept_csv.clone().into_bytes())
        };
        fs::write(dir.join(name), compressed(name, bytes)).unwrap();
        let kept = dir.at(&format!("kept-{name}"));
        let new = dir.at(name);
        let summary = dedup_json(&format!("run {new} -k 8 --kept {kept} --json"));
        let copied = plain(name, fs::read(&kept).unwrap());
        assert!(
            copied == *expected,
            "{name}: {}",
            String::from_utf8_lossy(&copied)
        );
        let decisions = &summary["decisions"];
        assert_eq!(decisions["duplicates_within"], 20);
        assert_eq!(decisions["kept_bytes"], fs::metadata(&kept).unwrap().len());
        assert!(decisions["duplicate_bytes"].as_u64().unwrap() > 20 * 1000);
        dedup(&format!("run {new} --kept {kept}")).fails(64, &["exists", "--overwrite"]);
        dedup_ok(&format!("run {new} -k 8 --kept {kept} --overwrite"));
        assert!(plain(name, fs::read(&kept).unwrap()) == *expected);
        dedup(&format!("run {new} --kept {}", dir.at("kept.txt"))).fails(64, &["must end in"]);
        dedup(&format!("run {new} --kept {new} --overwrite")).fails(64, &["which is read"]);
    }
    assert!(!dir.names().iter().any(|name| name.contains(".tmp")));
}

#[test]
fn kept_rows_of_parquet_have_all_their_columns() {
    let dir = Dir::new();
    fs::create_dir_all(dir.join("in/x")).unwrap();
    let mut expected: Vec<(String, Vec<String>)> = Vec::new();
    for (file, path) in ["in/a.parquet", "in/x/a.parquet"].into_iter().enumerate() {
        let numbers: Vec<usize> = (0..50).map(|at| 50 * file + at).collect();
        // Every fifth document is a shorter copy: in the first file of the one before it, in the
        // second file of one in the first.
        let copy_of = |number: usize| {
            if number % 5 == 4 {
                (number - 1) % 50
            } else {
                number
            }
        };
        let long = |number: usize| {
            if copy_of(number) == number {
                " and more words"
            } else {
                ""
            }
        };
        let pages = numbers
            .iter()
            .map(|&number| format!("{}{}", text(copy_of(number)), long(number)));
        let tags = numbers
            .iter()
            .map(|&number| Some((0..number as i64 % 3).map(Some).collect::<Vec<_>>()));
        let tags = ListArray::from_iter_primitive::<Int64Type, _, _>(tags);
        let ids: Vec<String> = numbers
            .iter()
            .map(|number| format!("{number:03}"))
            .collect();
        let kept = numbers
            .iter()
            .zip(&ids)
            .filter(|(number, _)| copy_of(**number) == **number);
        expected.push((
            path.replace("in/", "out/"),
            kept.map(|(_, id)| id.clone()).collect(),
        ));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("tags", Arc::new(tags)),
            ("text", strings(pages)),
            ("id", strings(&ids)),
            (
                "when",
                Arc::new(arrow::array::TimestampMicrosecondArray::from(vec![
                    Some(7);
                    50
                ])),
            ),
            (
                "blob",
                Arc::new(arrow::array::BinaryArray::from_vec(vec![b"\xff\xfe"; 50])),
            ),
        ];
        let batch = arrow::array::RecordBatch::try_from_iter(columns).unwrap();
        let properties = parquet::file::properties::WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_max_row_group_row_count(Some(20))
            .build();
        let writer = fs::File::create(dir.join(path)).unwrap();
        let mut writer =
            parquet::arrow::ArrowWriter::try_new(writer, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    let (new, out) = (dir.at("in"), dir.at("out/"));
    dedup_ok(&format!("run {new} -k 8 --kept {out}"));
    for (path, ids) in expected {
        let batches = read_parquet(dir.join(&path));
        let column = |name: &str| {
            batches
                .iter()
                .map(|batch| batch.column_by_name(name).unwrap().clone())
                .collect::<Vec<_>>()
        };
        let found: Vec<String> = column("id").iter().flat_map(texts).collect();
        assert_eq!(found, ids, "{path}");
        let numbers = ids.iter().map(|id| id.parse::<usize>().unwrap());
        let lists: Vec<usize> = column("tags")
            .iter()
            .flat_map(|tags| {
                tags.as_list::<i32>()
                    .iter()
                    .map(|tags| tags.unwrap().len())
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(lists, numbers.map(|number| number % 3).collect::<Vec<_>>());
        let original = dir.join(&path.replace("out/", "in/"));
        let schema = |path: &Path| {
            let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            let compression = file.metadata().row_group(0).column(0).compression();
            let root = file
                .metadata()
                .file_metadata()
                .schema_descr()
                .root_schema()
                .clone();
            (compression, root)
        };
        assert_eq!(schema(&dir.join(&path)), schema(&original));
    }
    // --kept does not overwrite an input, even with --overwrite.
    let old = dir.at("old.parquet");
    dedup_ok(&format!("fingerprint --input {new} --output {old}"));
    for (kept, part) in [
        (dir.at("in/clean/"), "which is read"),
        (dir.at("in"), "which is read"),
        (old.clone(), "which is read"),
    ] {
        let run = format!(
            "run {new} --base {old} --kept {kept} --overwrite -o {}",
            dir.at("o.csv")
        );
        dedup(&run).fails(64, &[part]);
    }
    // Nor does it overwrite a file that an input's pattern matches.
    let base = format!("run {new} --base {}", dir.at("ol*.parquet"));
    let run = format!("{base} --kept {old} --overwrite -o {}", dir.at("o.csv"));
    dedup(&run).fails(64, &["which is read"]);
    let one = dir.at("in/a.parquet");
    let (same, archive) = (dir.at("same.parquet"), dir.at("archive"));
    dedup(&format!("run {one} --kept {same} --fingerprints {same}"))
        .fails(64, &["are the same file"]);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    let inside = format!("run {one} --base {archive} --kept {archive}/x.parquet");
    dedup(&inside).fails(64, &["archive"]);
    // A run that commits its batch can be run again.
    let append = format!("run {one} --base {archive} --append --day 2026-01-01 -k 8 --kept {same}");
    dedup_ok(&append);
    dedup_ok(&append);
    fs::write(&same, "another file").unwrap();
    dedup(&append).fails(64, &["exists"]);
    // Copies of several files need a directory.
    fs::write(dir.join("file"), "").unwrap();
    dedup(&format!("run {new} --kept {}", dir.at("file"))).fails(64, &["directory"]);
}

#[test]
fn preferred_values_may_be_of_any_kind() {
    let dir = Dir::new();
    let lines = [
        r#"{"id":"a","fp":1,"q":"10"}"#,
        r#"{"id":"b","fp":1,"q":9.5}"#,
        r#"{"id":"c","fp":1,"q":null}"#,
        r#"{"id":"d","fp":1,"q":"zebra"}"#,
        r#"{"id":"e","fp":1,"q":true}"#,
        r#"{"id":"f","fp":1}"#,
    ];
    let new = dir.at("d.jsonl");
    fs::write(&new, lines.join("\n")).unwrap();
    let csv = dir.at("d.csv");
    fs::write(
        &csv,
        "id,fp,q\na,1,10\nb,1,9.5\nc,1,\nd,1,zebra\ne,1,1\nf,1,\n",
    )
    .unwrap();
    let output = dir.at("o.parquet");
    let kept = |new: &str, prefer: &str| -> String {
        dedup_ok(&format!("run {new} --prefer {prefer} --decisions {output}"));
        let kept = read_decisions(&output).into_iter().find(|row| row.kept);
        kept.unwrap().id
    };
    for new in [&new, &csv] {
        assert_eq!(kept(new, "q"), "e", "{new}");
        assert_eq!(kept(new, "q:desc"), "a", "{new}");
        assert_eq!(kept(new, "id:desc"), "f", "{new}");
    }
    dedup(&format!("run {csv} --prefer nope --decisions {output}"))
        .fails(65, &["d.csv", "nope", "--prefer"]);
    let nested = dir.at("nested.jsonl");
    fs::write(&nested, r#"{"id":"a","fp":1,"q":[1]}"#).unwrap();
    dedup(&format!("run {nested} --prefer q --decisions {output}"))
        .fails(65, &["nested.jsonl", "\"q\""]);
    let fresh = dir.at("fresh.parquet");
    for (options, part) in [
        ("--prefer q".to_owned(), "--prefer needs"),
        (
            format!("--decisions {output} --max-hits-per-document 2"),
            "--max-hits-per-document",
        ),
        (
            format!("--decisions {}", dir.at("o.txt")),
            "the ending says the format",
        ),
        (
            format!("--decisions {fresh} -o {fresh}"),
            "are the same file",
        ),
        ("--decisions - -o -".to_owned(), "standard output"),
        (
            format!("--decisions {output} --prefer :desc"),
            "the name of the column is missing",
        ),
    ] {
        dedup(&format!("run {csv} {options}")).fails(64, &[part]);
    }
    // Standard output gets the decisions alone.
    let ran = dedup_ok(&format!("run {csv} --decisions -"));
    assert_eq!(ran.stdout.lines().count(), 6);
    assert!(ran.stderr.contains("6 documents: 1 kept"), "{}", ran.stderr);
}

#[test]
fn documents_without_ids_get_file_and_row() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    let pages: Vec<String> = (0..9).map(|number| text(number % 7)).collect();
    let lines: String = pages
        .iter()
        .map(|page| format!("{{\"body\":\"{page}\",\"n\":1}}\n\n"))
        .collect();
    fs::write(dir.join("in/a.jsonl"), lines).unwrap();
    let records: String = pages.iter().map(|page| format!("{page},1\n")).collect();
    fs::write(dir.join("in/b.csv"), format!("text,n\n{records}")).unwrap();
    let columns = vec![("text", strings(&pages))];
    write_parquet_in_groups(dir.join("in/c.parquet"), columns, 4);
    let (new, output) = (dir.at("in"), dir.at("o.parquet"));
    let ran = dedup_ok(&format!("run {new} --decisions {output} --threads 2"));
    assert!(
        ran.stderr.contains("each document gets the id FILE:ROW"),
        "{}",
        ran.stderr
    );
    let mut expected: Vec<(String, bool)> = ["a.jsonl", "b.csv", "c.parquet"]
        .iter()
        .flat_map(|name| (1..=9).map(move |row| (*name, row)))
        .map(|(name, row)| (format!("{name}:{row}"), name == "a.jsonl" && row < 8))
        .collect();
    expected.sort();
    let found = read_decisions(&output).into_iter();
    let found: Vec<(String, bool)> = found.map(|row| (row.id, row.kept)).collect();
    assert_eq!(found, expected);
    // Ids by file and row also serve in pairs and in the lookup of texts; a column that is named
    // but missing is an error.
    let pairs = dir.at("pairs.parquet");
    let verify = format!("run {new} --verify jaccard --output {pairs} --json");
    let summary = dedup_json(&verify);
    let hits = summary["hits"].as_u64().unwrap();
    assert_eq!(summary["verified"]["checked"], hits);
    assert_eq!(summary["verified"]["without_text"], 0);
    assert!(read_similar(&pairs).iter().all(|pair| pair.2 == 0));
    let explained = dedup(&format!("explain b.csv:1 c.parquet:8 --documents {new}"));
    assert!(!explained.ok().stdout.contains("missed"));
    dedup(&format!("run {new} --id-column key --decisions {output}"))
        .fails(65, &["key", "--id-column"]);
    // An archive needs an id column: ids by file and row would repeat on other days.
    let archive = dir.archive("archive", "--profile paper");
    let append = format!("run {new} --base {archive} --append --day 2026-01-01");
    dedup(&append).fails(65, &["no id column", "--id-column"]);
    let plan = dedup_json(&format!("plan {new} --json"));
    assert_eq!(
        (&plan["new"]["documents"], &plan["base"]["fingerprints"]),
        (&27.into(), &0.into())
    );
}
