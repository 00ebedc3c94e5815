//! Tests of templates: what the pages of a source share is left out of their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::helpers::support::*;

/// A line of words that only `of` has. They have no digit: numbers do not tell passages apart.
fn line(of: &str, words: usize) -> String {
    let letters = |mut n: usize| {
        let mut word = String::new();
        loop {
            word.push(char::from(b'a' + (n % 26) as u8));
            n /= 26;
            if n == 0 {
                return word;
            }
        }
    };
    let words: Vec<String> = (0..words).map(|n| format!("{of}{}", letters(n))).collect();
    words.join(" ")
}

fn name(n: usize) -> String {
    format!(
        "x{}{}x",
        char::from(b'a' + (n / 26) as u8),
        char::from(b'a' + (n % 26) as u8)
    )
}

/// A page of a host: its content between the lines of the host's frame.
fn page(host: &str, path: &str, content: &str) -> Value {
    let (top, bottom) = (
        line(&format!("{host}top"), 150),
        line(&format!("{host}foot"), 150),
    );
    json!({
        "id": format!("{host}/{path}"),
        "url": format!("https://www.{host}.example/{path}"),
        "text": format!("Home\nNews\n{top}\n{content}\n{bottom}\nSeen 123 times"),
    })
}

/// A shop of 20 products in 30 words each; and five hosts, of five own pages each, that have one article.
fn crawl() -> Vec<Value> {
    let mut pages = Vec::new();
    for n in 0..20 {
        pages.push(page("shop", &n.to_string(), &line(&name(n), 30)));
    }
    let hosts = ["alpha", "beta", "gamma", "delta", "epsilon"];
    for (at, host) in hosts.into_iter().enumerate() {
        for n in 0..5 {
            pages.push(page(
                host,
                &n.to_string(),
                &line(&name(100 + 10 * at + n), 60),
            ));
        }
        pages.push(page(host, "article", &line("article", 120)));
    }
    pages
}

/// The ids that decisions in CSV drop.
fn dropped(decisions: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(decisions).unwrap();
    let rows = text
        .lines()
        .skip(1)
        .map(|row| row.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[1] == "false")
        .map(|row| row[0].to_owned())
        .collect()
}

#[test]
fn products_of_a_shop_are_kept_and_mirrors_are_found() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    write_lines(&new, &crawl());
    let run = format!("run {new} --decisions {decisions} --overwrite");
    let summary = dedup_json(&format!("{run} --json"));
    let copies = ["beta", "delta", "epsilon", "gamma"].map(|host| format!("{host}/article"));
    assert_eq!(dropped(&decisions), copies.into());
    assert_eq!(
        summary["new"]["templates"],
        // Of each source, two long lines, two short ones, and the counter.
        json!({ "sources": 6, "with_template": 6, "passages": 30, "of_many_sources": 0 })
    );
    let text = dedup_ok(&run).stdout;
    assert!(
        text.contains("  templates: left out of the texts of 6 of 6 sources: 30 passages"),
        "{text}"
    );

    // The texts as a whole: products repeat each other, and no mirror is found.
    let summary = dedup_json(&format!("{run} --template off --json"));
    let found = dropped(&decisions);
    assert!(summary["new"].get("templates").is_none());
    assert!(found.len() > 10, "{found:?}");
    assert!(found.iter().all(|id| id.starts_with("shop/")), "{found:?}");

    // Another column says the source.
    let pages: Vec<Value> = crawl()
        .into_iter()
        .map(|mut page| {
            let url = page.as_object_mut().unwrap().remove("url").unwrap();
            page["site"] = url.as_str().unwrap().split('/').nth(2).unwrap().into();
            page
        })
        .collect();
    write_lines(&new, &pages);
    dedup_ok(&run);
    assert!(dropped(&decisions).len() > 10);
    dedup_ok(&format!("{run} --source site"));
    assert_eq!(dropped(&decisions).len(), 4);
}

#[test]
fn decisions_do_not_depend_on_files_threads_and_memory() {
    let dir = Dir::new();
    let mut random = ChaCha8Rng::seed_from_u64(45);
    let mut pages = crawl();
    // Documents that share everything but the id, and documents without a source.
    for n in 0..30 {
        let mut again = pages[random.random_range(0..50)].clone();
        again["id"] = format!("again{n}").into();
        if n % 3 == 0 {
            again.as_object_mut().unwrap().remove("url");
        }
        pages.push(again);
    }
    let output = dir.at("decisions.csv");
    let mut expected: Option<(Vec<u8>, Value)> = None;
    for (number, options) in [
        "--threads 1",
        "--threads 2",
        "--threads 3 --memory-limit 64MiB",
    ]
    .into_iter()
    .enumerate()
    {
        pages.shuffle(&mut random);
        let folder = dir.at(&format!("files{number}"));
        fs::create_dir(&folder).unwrap();
        for (file, pages) in pages.chunks(11 + 7 * number).enumerate() {
            write_lines(&format!("{folder}/{file}.jsonl"), pages);
        }
        let run = format!("run {folder} --decisions {output} --overwrite --prefer id {options}");
        let summary = dedup_json(&format!("{run} --json"));
        let found = (fs::read(&output).unwrap(), summary["new"]["digest"].clone());
        assert_eq!(*expected.get_or_insert(found.clone()), found, "{options}");
    }
}

/// The pages of a night: one of each host, one of which is a copy of an earlier page of another host.
fn night(n: usize) -> Vec<Value> {
    let hosts = ["alpha", "beta", "gamma"];
    let own = |host: usize| line(&name(3 * n + host), 40);
    let page_of = |host: usize, content: &str| page(hosts[host], &n.to_string(), content);
    let mut pages = vec![
        page_of(0, &own(0)),
        page_of(1, &own(1)),
        page_of(2, &own(2)),
    ];
    if n >= 5 {
        let earlier = line(&name(3 * (n - 1)), 40);
        pages[2] = page_of(2, &earlier);
    }
    pages
}

#[test]
fn sources_of_one_page_a_night_are_learnt_and_reruns_see_what_the_first_run_saw() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "-q");
    let mut first: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let (new, output) = (dir.at("new.jsonl"), dir.at("decisions.csv"));
    let run_night = |n: usize, options: &str| {
        write_lines(&new, &night(n));
        let run = format!("run {new} --base {archive} --decisions {output} --overwrite --json");
        dedup_json(&format!("{run} {options}"))
    };
    for n in 0..12 {
        let day = format!("--day 2026-01-{:02}", n + 1);
        let summary = run_night(n, &format!("--append {day}"));
        // Pages of one host share 300 of 340 words. The frame of a host is known with its fourth page.
        let expected: BTreeSet<String> = match n {
            5.. => [format!("gamma/{n}")].into(),
            _ => BTreeSet::new(),
        };
        let found = dropped(&output);
        match n {
            1..3 => assert!(!found.is_empty(), "night {n}: {found:?}"),
            _ => assert_eq!(found, expected, "night {n}"),
        }
        assert_eq!(
            summary["commit"].as_object().map(|commit| commit.len()),
            Some(1),
            "{summary}"
        );
        first.insert(n, fs::read(&output).unwrap());
    }
    let info = dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(info["templates"]["sources"], 3);
    assert!(
        info["templates"]["bytes"].as_u64().unwrap() < 10_000,
        "{info}"
    );
    let version = info["version"].clone();
    for n in (0..12).rev() {
        let day = format!("--append --day 2026-01-{:02}", n + 1);
        // Also without the day, by the documents alone.
        for options in [day.as_str(), ""] {
            run_night(n, options);
            assert!(
                fs::read(&output).unwrap() == first[&n],
                "night {n}, {options:?}"
            );
        }
    }
    let info = dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(info["version"], version);

    // What is template, for people.
    write_lines(&new, &night(11));
    let shown = format!("archive templates {archive} --source https://alpha.example/1");
    let text = dedup_ok(&format!("{shown} --documents {new}")).stdout;
    for passage in ["Home", "Seen 123 times", "alphatopa alphatopb"] {
        assert!(text.contains(passage), "{text}");
    }
    assert!(!text.contains(&line(&name(33), 40)), "{text}");
    let unknown = format!("archive templates {archive} --source nobody.example");
    dedup(&unknown).fails(64, &["nobody.example", "3 sources"]);
}

#[test]
fn lookups_and_ready_fingerprints_leave_out_what_the_archive_knows() {
    let dir = Dir::new();
    let (archive, index) = (dir.at("archive"), dir.at("index"));
    let (first, second) = (dir.at("first.jsonl"), dir.at("second.jsonl"));
    write_lines(&first, &crawl());
    // A page of a host that is known, with an article that is known in another frame; and a page without a source.
    let copy = page("shop", "copy", &line("article", 120));
    write_lines(&second, std::slice::from_ref(&copy));
    dedup_ok(&format!("archive create {archive} -q"));
    dedup_ok(&format!(
        "archive append {archive} --input {first} --day 2026-01-01 -q"
    ));
    dedup_ok(&format!("index build --base {archive} --output {index} -q"));
    let hits = |query: &Value, options: &str| {
        let queries = dir.at("queries.jsonl");
        write_lines(&queries, std::slice::from_ref(query));
        let found = dedup_ok(&format!(
            "lookup --index {index} {queries} --json {options}"
        ));
        found.json()["hits"].as_array().unwrap().len()
    };
    assert_eq!(hits(&copy, ""), 5);
    let mut without = copy.clone();
    without.as_object_mut().unwrap().remove("url");
    assert_eq!(hits(&without, ""), 0);

    // Fingerprints that are made for the archive find the same; those of whole texts are refused if they name their source.
    let (ready, pairs) = (dir.at("ready.parquet"), dir.at("pairs.csv"));
    let with = format!("run {ready} --base {archive} --output {pairs} --overwrite --json");
    dedup_ok(&format!(
        "fingerprint {second} --base {archive} --output {ready} -q"
    ));
    assert_eq!(dedup_json(&with)["hits"], 5);
    let whole = "--sketch 256 --short-texts whole";
    dedup_ok(&format!(
        "fingerprint {second} {whole} --output {ready} --overwrite -q"
    ));
    assert_eq!(dedup_json(&with)["hits"], 0);
    dedup(&format!(
        "run {second} --base {archive} --template off --output {pairs}"
    ))
    .fails(78, &["template: \"on\" against \"off\""]);
}

/// What an archive remembers of a source: recent pages and passages of its template.
fn remembered(archive: &str, source: &str) -> [u64; 2] {
    let shown = format!("archive templates {archive} --source {source} --json");
    let shown = dedup_json(&shown);
    ["pages", "template_passages"].map(|name| shown[name].as_u64().unwrap())
}

/// Splits a job, and does all parts of its rounds; the names of its maps.
fn do_rounds(job: &str, options: &str) -> Vec<String> {
    let mut maps = Vec::new();
    let mut line = format!("split {job} {options} --parts 3 --json");
    loop {
        let split = dedup_json(&line);
        if split["ready"] == true {
            return maps;
        }
        for part in 0..split["parts"].as_u64().unwrap() {
            dedup_ok(&format!("map {job} --part {part}"));
        }
        for map in split["maps"].as_array().unwrap() {
            maps.push(map["map"].as_str().unwrap().to_owned());
        }
        line = format!("split {job} --json");
    }
}

#[test]
fn what_is_remembered_outlives_replaced_days_and_old_memories() {
    let dir = Dir::new();
    let (archive, new) = (dir.at("archive"), dir.at("new.jsonl"));
    let run = |n: usize, options: &str| {
        write_lines(&new, &night(n));
        let day = format!("2026-01-{:02}", n + 1);
        dedup(&format!(
            "run {new} --base {archive} --append --day {day} {options} --json"
        ))
    };
    dedup_ok(&format!("archive create {archive} -q"));
    for n in 0..6 {
        run(n, "").ok();
    }
    assert_eq!(remembered(&archive, "alpha.example"), [6, 5]);
    // The same documents with other decisions are not counted twice, and later days are not forgotten.
    run(0, "--replace-day -k 5").ok();
    assert_eq!(remembered(&archive, "alpha.example"), [6, 5]);
    // A vacuum leaves what the last day needs.
    dedup_ok(&format!(
        "archive vacuum {archive} --older-than 0s --nothing-runs"
    ));
    run(0, "-k 5").ok();
    assert_eq!(remembered(&archive, "alpha.example"), [6, 5]);
    run(3, "").fails(78, &["_dedup-job/templates/", "vacuum"]);
    // Without what it remembers, an archive says so.
    for file in fs::read_dir(dir.join("archive/_dedup-job/templates")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    run(9, "").fails(78, &["_dedup-job/templates/", "missing"]);
    let info = dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(info["templates"], Value::Null);
}

/// The record of a day says which templates were known.
#[test]
fn a_day_without_its_record_is_not_run_again_with_other_templates() {
    let dir = Dir::new();
    let (archive, new) = (dir.archive("archive", "-q"), dir.at("new.jsonl"));
    let run = |n: usize| {
        write_lines(&new, &night(n));
        let day = format!("2026-01-{:02}", n + 1);
        dedup(&format!(
            "run {new} --base {archive} --append --day {day} --json"
        ))
    };
    for n in 0..6 {
        run(n).ok();
    }
    let verify = || dedup(&format!("archive info {archive} --verify"));
    verify().ok();
    let records = fs::read_dir(dir.join("archive/_dedup-job/days")).unwrap();
    let mut records = records.map(|entry| entry.unwrap().path());
    let record = records.find(|path| path.to_string_lossy().contains("days/2026-01-02-"));
    let record = record.unwrap();
    let name = record.file_name().unwrap().to_str().unwrap();
    let whole = fs::read(&record).unwrap();
    fs::write(&record, "{}").unwrap();
    verify().fails(65, &[name, "damaged"]);
    run(1).fails(65, &[name, "damaged"]);
    fs::remove_file(&record).unwrap();
    verify().fails(65, &[name, "missing"]);
    run(1).fails(78, &[name, "missing"]);
    fs::write(&record, whole).unwrap();
    verify().ok();
    run(1).ok();
}

#[test]
fn texts_of_the_archive_are_compared_without_their_templates() {
    let dir = Dir::new();
    let (archive, hits) = (dir.at("archive"), dir.at("hits.csv"));
    let (first, second) = (dir.at("first.jsonl"), dir.at("second.jsonl"));
    write_lines(&first, &crawl());
    // Six pages of another host, one of which has the article.
    let mut pages: Vec<Value> = (0..5)
        .map(|n| page("zeta", &n.to_string(), &line(&name(300 + n), 50)))
        .collect();
    pages.push(page("zeta", "article", &line("article", 120)));
    write_lines(&second, &pages);
    dedup_ok(&format!("archive create {archive} -q"));
    dedup_ok(&format!(
        "archive append {archive} --input {first} --day 2026-01-01 -q"
    ));
    let run = format!("run {second} --base {archive} --output {hits} --overwrite --json");
    assert_eq!(dedup_json(&run)["hits"], 5);
    let texts = format!("--verify jaccard --base-text {first}");
    let summary = dedup_json(&format!("{run} {texts}"));
    assert_eq!(summary["hits"], 5);
    assert_eq!(summary["verified"]["without_text"], 0);
    // As a job.
    let job = dir.at("job");
    let options = format!("--new {second} --base {archive} --output {hits} --overwrite {texts}");
    do_rounds(&job, &options);
    let reduced = dedup_json(&format!("reduce {job} --json"));
    assert_eq!(reduced["verified"]["without_text"], 0);
    assert_eq!(reduced["hits"], 5);
}

#[test]
fn short_texts_stay_as_they_are_if_nothing_is_left_out() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    let mut pages = crawl();
    for host in ["alpha", "beta", "other"] {
        let url = format!("https://{host}.example/short");
        let id = format!("{host}/short");
        pages.push(json!({ "id": id, "url": url, "text": "thank you very much for this" }));
    }
    write_lines(&new, &pages);
    dedup_ok(&format!("run {new} --decisions {decisions}"));
    let short: BTreeSet<String> = ["beta/short", "other/short"].map(str::to_owned).into();
    let found = dropped(&decisions);
    assert!(short.is_subset(&found), "{found:?}");
}

#[test]
fn templates_of_html_in_one_line_are_left_out() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    let pages: Vec<Value> = crawl()
        .into_iter()
        .map(|mut page| {
            let text = page["text"].as_str().unwrap();
            let blocks: Vec<String> = text
                .lines()
                .map(|line| format!("<div>{line}</div>"))
                .collect();
            page["text"] = format!("<html><body>{}</body></html>", blocks.concat()).into();
            page
        })
        .collect();
    write_lines(&new, &pages);
    let run = format!("run {new} --decisions {decisions} --overwrite --markup text");
    dedup_ok(&run);
    assert_eq!(dropped(&decisions).len(), 4);
    // With sketches of an archive, and as a job.
    let archive = dir.archive("archive", "--markup text -q");
    let job = dir.at("job");
    let options = format!(
        "--new {new} --base {archive} --day 2026-01-01 --append --decisions {decisions} --overwrite"
    );
    let maps = do_rounds(&job, &options);
    dedup_ok(&format!("reduce {job}"));
    assert_eq!(maps[..2], ["pages", "fingerprint"]);
    assert_eq!(dropped(&decisions).len(), 4);
}

#[test]
fn hosts_of_one_registrable_domain_are_one_source() {
    let dir = Dir::new();
    let (new, decisions, archive) = (
        dir.at("d.jsonl"),
        dir.at("decisions.csv"),
        dir.at("archive"),
    );
    let pages = (0..10).map(|n| {
        let mut page = page("shop", &n.to_string(), &line(&name(n), 30));
        page["url"] = format!("https://{}.shop.co.uk/", name(n)).into();
        page
    });
    write_lines(&new, &pages.collect::<Vec<_>>());
    let run = format!("run {new} --decisions {decisions} --overwrite --json");
    dedup_ok(&run);
    assert!(
        dropped(&decisions).len() > 5,
        "of ten sources, one page each"
    );
    let summary = dedup_json(&format!("{run} --template domains"));
    assert!(dropped(&decisions).is_empty());
    assert_eq!(summary["new"]["templates"]["sources"], 1);

    dedup_ok(&format!("archive create {archive} --template domains"));
    let append = format!(
        "run {new} --base {archive} --append --day 2026-01-30 --decisions {decisions} --overwrite"
    );
    dedup_ok(&append);
    assert!(dropped(&decisions).is_empty());
    let template = "archive templates {archive} --json --source";
    let template = template.replace("{archive}", &archive);
    for source in ["other.shop.co.uk", "https://www.shop.co.uk/x", "shop.co.uk"] {
        let known = dedup_json(&format!("{template} {source}"));
        assert_eq!(known["source"], "shop.co.uk", "{source}");
    }
    let passages = dedup_ok(&format!("{template} a.shop.co.uk --documents {new}"));
    assert_eq!(passages.json()["passages"].as_array().unwrap().len(), 5);
    // A look-up leaves the template out, too: the product is found, and no other.
    let index = dir.at("index");
    dedup_ok(&format!("index build --base {archive} --output {index}"));
    let text = page("shop", "0", &line(&name(0), 30))["text"].clone();
    let query = json!({ "url": "https://new.shop.co.uk/", "text": text });
    let query_file = dir.at("q.jsonl");
    fs::write(&query_file, query.to_string()).unwrap();
    let found = dedup_ok(&format!("lookup {query_file} --index {index} --json"));
    assert_eq!(found.stdout.matches("shop/").count(), 1, "{}", found.stdout);
}

#[test]
fn what_an_archive_leaves_out_is_grey_below_the_texts() {
    let dir = Dir::new();
    let (new, archive, decisions) = (dir.at("d.jsonl"), dir.at("archive"), dir.at("d.csv"));
    write_lines(&new, &crawl());
    dedup_ok(&format!("archive create {archive}"));
    let night =
        format!("--base {archive} --day 2026-01-01 --append --decisions {decisions} --columns url");
    dedup_ok(&format!("run --new {new} {night}"));

    let show = format!("show {decisions} --documents {new} --archive {archive}");
    let shown = dedup_ok(&show).stdout;
    let line_of = |start: &str| {
        let lines = shown.lines().map(str::trim);
        let found = lines.filter(|line| line.starts_with(start)).count();
        assert_eq!(found, 1, "{start}: {shown}");
    };
    for id in [
        "beta/article",
        "delta/article",
        "epsilon/article",
        "gamma/article",
    ] {
        line_of(&format!("template of {id}, left out: Home News "));
    }
    assert!(!shown.contains('['), "the contents are equal: {shown}");
    let mut in_colours = command();
    in_colours.args(show.split(' ')).env("CLICOLOR_FORCE", "1");
    let coloured = Ran::of(in_colours.output().unwrap()).ok().stdout;
    assert!(
        coloured.contains("\u{1b}[90mtemplate of beta/article"),
        "{coloured}"
    );
    let whole = dedup_ok(&format!("show {decisions} --documents {new}"));
    assert!(whole.stdout.contains('[') && !whole.stdout.contains("left out"));

    let json = dedup_json(&format!("{show} -n 1 --json"));
    let article = line("article", 120);
    assert_eq!(json["base_text"], format!("{article}\n"));
    let template = json["base_template"].as_str().unwrap();
    assert!(template.starts_with("Home\nNews\n") && template.ends_with("Seen 123 times"));

    let page = dir.at("page.html");
    let report = format!("report {decisions} --documents {new} -o {page}");
    dedup_ok(&format!("{report} --archive {archive}"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("<p class=\"template\" dir=\"auto\">Template, left out: Home News betatop"),
        "{html}"
    );
    assert!(html.contains("<th scope=\"col\">template</th>"), "{html}");
    let share = html.split("beta.example</th>").nth(1).unwrap();
    let cells: Vec<&str> = share.split("</td>").collect();
    assert!(cells[3].ends_with(" %"), "{cells:?}");
    let share: f64 = cells[3].rsplit('>').next().unwrap()[..4].parse().unwrap();
    let (template, content) = (6.0 * 305.0, 5.0 * 60.0 + 120.0);
    assert!(
        (share - 100.0 * template / (template + content)).abs() < 0.2,
        "{share}"
    );
    dedup_ok(&format!("{report} --overwrite"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("left out") && !html.contains(">template</th>"));
}
