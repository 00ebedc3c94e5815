//! Makes the page: one HTML file that contains its style sheet, script and charts.

use std::collections::BTreeMap;

use engine::output::{OutputKind, REPORT_START};

use super::bit_shares::BitShares;
use super::chart::{Bar, Chart, Scale};
use super::escape::{escape, escaped_start};
use super::facts::{Facts, SIMILARITY_BINS};
use super::samples::{Sample, Why};
use super::source_tables::{write_losses, write_matrix};
use super::sources::Matrix;
use crate::printing::{count, date};
use crate::word_diff::{Part, Sides};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Characters shown of each text.
const SIDE_CHARACTERS: usize = 1600;
const MOST_SAMPLES: usize = 150;
/// Size of the page, in bytes, from which on samples have no texts.
const ENOUGH_BYTES: usize = 1_500_000;

/// What the page shows.
#[derive(Debug)]
pub(super) struct Report<'a> {
    /// The file name of the output that the page describes.
    pub(super) name: &'a str,
    pub(super) facts: &'a Facts,
    pub(super) matrix: Option<&'a Matrix>,
    pub(super) bit_shares: Option<&'a BitShares>,
    pub(super) warnings: &'a [String],
    pub(super) samples: &'a [Shown],
    /// The similarity around which samples were chosen.
    pub(super) threshold: f64,
    /// Whether --documents named files to look up texts in.
    pub(super) looked_up: bool,
    /// Whether the page may show texts; false with --no-text.
    pub(super) texts: bool,
}

/// A sample with its texts.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) sample: Sample,
    /// The two texts, compared; `None` if one was not found or none were looked up.
    pub(super) sides: Option<Sides>,
    /// The start of each text's template, which is not compared; `None` if the text has none.
    pub(super) templates: [Option<String>; 2],
}

/// Returns the page as HTML.
pub(super) fn page(report: &Report<'_>) -> String {
    let mut html = String::with_capacity(64 << 10);
    let name = escape(report.name);
    html += &format!(
        "{REPORT_START}<head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; img-src data:\"><link rel=\"icon\" href=\"data:,\"><title>{name}: near-duplicates</title>\n\
         <style>\n{STYLE}</style></head>\n<body><header><h1>Near-duplicates in {name}</h1></header>\n<main>\n"
    );
    write_numbers(&mut html, report.facts);
    if !report.warnings.is_empty() {
        html.push_str("<section aria-label=\"Warnings\"><ul class=\"warnings\">");
        for warning in report.warnings {
            html += &format!("<li>{}</li>", escape(warning));
        }
        html.push_str("</ul></section>\n");
    }
    write_charts(&mut html, report);
    if !report.facts.losses.is_empty() {
        write_losses(&mut html, &report.facts.losses);
    }
    if let Some(matrix) = report.matrix {
        write_matrix(&mut html, matrix);
    }
    write_samples(&mut html, report);
    html += &format!(
        "</main>\n<footer>Made by dedup-job {}. Distances are bits in which two fingerprints of 64 bits differ.</footer>\n\
         <script>\n{SCRIPT}</script></body></html>\n",
        env!("CARGO_PKG_VERSION")
    );
    html
}

fn write_numbers(html: &mut String, facts: &Facts) {
    let percent = |part: u64| format!("{:.1} %", 100.0 * part as f64 / facts.rows.max(1) as f64);
    let items: Vec<(u64, String)> = match facts.kind {
        OutputKind::Decisions => {
            let (kept, dropped) = (facts.kept(), facts.pairs);
            let within = facts.duplicates_within();
            let of_archive = "duplicates of documents of the archive";
            vec![
                (facts.rows, "documents".into()),
                (kept, format!("kept, {}", percent(kept))),
                (dropped, format!("dropped, {}", percent(dropped))),
                (dropped - within, of_archive.into()),
                (within, "duplicates within the batch".into()),
            ]
        }
        _ => {
            let documents = facts.degrees.values().sum();
            vec![
                (facts.pairs, "pairs".into()),
                (documents, "documents that are new_id of a pair".into()),
            ]
        }
    };
    html.push_str("<ul class=\"numbers\">");
    for (number, name) in &items {
        *html += &format!(
            "<li><strong>{}</strong><span>{name}</span></li>",
            count(*number)
        );
    }
    html.push_str("</ul>\n");
    if facts.kind == OutputKind::Decisions && facts.rows > 0 {
        write_origins(html, facts);
    }
}

/// Writes one bar with the shares of kept and dropped documents.
fn write_origins(html: &mut String, facts: &Facts) {
    let within = facts.duplicates_within();
    let parts = [
        (facts.kept(), "kept"),
        (facts.pairs - within, "dropped: in the archive"),
        (within, "dropped: in the batch"),
    ];
    html.push_str(
        "<section><h2>Kept and dropped, by origin</h2><div class=\"origin\" aria-hidden=\"true\">",
    );
    for (number, (documents, _)) in parts
        .iter()
        .enumerate()
        .filter(|(_, (documents, _))| *documents > 0)
    {
        let share = 100.0 * *documents as f64 / facts.rows as f64;
        *html += &format!("<span class=\"o{number}\" style=\"flex: {share:.3}\"></span>");
    }
    html.push_str("</div><ul class=\"key\">");
    for (number, (documents, name)) in parts.iter().enumerate() {
        *html += &format!(
            "<li><i class=\"o{number}\"></i>{name}: {}</li>",
            count(*documents)
        );
    }
    html.push_str("</ul></section>\n");
}

fn write_charts(html: &mut String, report: &Report<'_>) {
    let facts = report.facts;
    html.push_str("<section><h2>Overview</h2>");
    if facts.pairs > 0 {
        write_slider(html, facts);
    }
    html.push_str("<div class=\"charts\">\n");
    if facts.pairs > 0 {
        by_distance(facts).write(html);
        if facts.unknown_similarity < facts.pairs {
            by_similarity(facts, report.threshold).write(html);
        }
    }
    sizes(facts).write(html);
    if let Some(days) = days_back(facts) {
        days.write(html);
    }
    if let Some(bit_shares) = report.bit_shares {
        bits(bit_shares).write(html);
    }
    html.push_str("</div></section>\n");
}

/// The largest distance of a pair.
fn largest_distance(facts: &Facts) -> usize {
    facts
        .by_distance
        .iter()
        .rposition(|pairs| *pairs > 0)
        .unwrap_or(0)
}

fn write_slider(html: &mut String, facts: &Facts) {
    let k = largest_distance(facts);
    let counts: Vec<String> = facts.by_distance[..=k].iter().map(u64::to_string).collect();
    *html += &format!(
        "<div class=\"controls\"><label for=\"k\">Largest distance k</label><input id=\"k\" type=\"range\" min=\"0\" max=\"{k}\" \
         value=\"{k}\" step=\"1\" data-counts=\"{}\"><output id=\"within\" for=\"k\">k = {k}: {} pairs</output></div>\n",
        counts.join(","),
        count(facts.pairs)
    );
}

fn by_distance(facts: &Facts) -> Chart<'static> {
    let bars = facts.by_distance[..=largest_distance(facts)]
        .iter()
        .enumerate();
    Chart {
        title: "Pairs by distance",
        caption: "What each k adds: pairs whose fingerprints differ in so many bits.",
        of_bars: "distance in bits",
        of_values: "pairs",
        bars: bars
            .map(|(distance, pairs)| Bar {
                distance: Some(distance),
                ..Bar::of_count(distance.to_string(), *pairs)
            })
            .collect(),
        scale: Scale::Linear,
        line: None,
    }
}

fn by_similarity(facts: &Facts, threshold: f64) -> Chart<'static> {
    let bar = |(bin, pairs): (usize, &u64)| {
        let from = bin as f64 / SIMILARITY_BINS as f64;
        let to = (bin + 1) as f64 / SIMILARITY_BINS as f64;
        Bar {
            label: if bin % 4 == 0 {
                format!("{from:.1}")
            } else {
                String::new()
            },
            ..Bar::of_count(format!("{from:.2} to {to:.2}"), *pairs)
        }
    };
    Chart {
        title: "Pairs by similarity",
        caption: match facts.unknown_similarity {
            0 => "How much the two texts of each pair have in common, computed or estimated.",
            _ => {
                "How much the two texts of each pair have in common, computed or estimated. Pairs without a known similarity are left out."
            }
        },
        of_bars: "similarity",
        of_values: "pairs",
        bars: facts.by_similarity.iter().enumerate().map(bar).collect(),
        scale: Scale::Linear,
        line: Some((
            threshold * SIMILARITY_BINS as f64,
            format!("{threshold:.2}"),
        )),
    }
}

/// A chart of group sizes, or of pairs per document, in bins of powers of two on logarithmic axes.
fn sizes(facts: &Facts) -> Chart<'static> {
    let mut bins: BTreeMap<u32, u64> = BTreeMap::new();
    for (size, number) in facts.sizes() {
        *bins
            .entry(size.max(1).next_power_of_two().trailing_zeros())
            .or_default() += number;
    }
    let last = bins.keys().next_back().copied().unwrap_or(0);
    let bar = |bin: u32| {
        let up_to = 1_u64 << bin;
        let name = match bin {
            0 | 1 => count(up_to),
            _ => format!("{} to {}", count(up_to / 2 + 1), count(up_to)),
        };
        let every = 1 + last / 8;
        Bar {
            label: if bin.is_multiple_of(every) {
                count(up_to)
            } else {
                String::new()
            },
            ..Bar::of_count(name, bins.get(&bin).copied().unwrap_or(0))
        }
    };
    let (title, caption, of_bars, of_values) = match facts.kind {
        OutputKind::Decisions => (
            "Group sizes",
            "Groups by the number of their documents: a kept document and its duplicates. Both scales are logarithmic.",
            "documents of a group, at most",
            "groups",
        ),
        _ => (
            "Pairs of a document",
            "Documents by the number of pairs of which they are new_id. Both scales are logarithmic.",
            "pairs of a document, at most",
            "documents",
        ),
    };
    Chart {
        title,
        caption,
        of_bars,
        of_values,
        bars: (0..=last).map(bar).collect(),
        scale: Scale::Logarithmic,
        line: None,
    }
}

/// Upper bounds, in days, and labels of the bins of [`days_back`].
const DAYS_BACK: [(i64, &str); 9] = [
    (0, "0"),
    (1, "1"),
    (2, "2"),
    (7, "≤7"),
    (14, "≤14"),
    (30, "≤30"),
    (90, "≤90"),
    (365, "≤365"),
    (i64::MAX, "more"),
];

/// A chart of the other documents' ages; `None` if their days are not known.
fn days_back(facts: &Facts) -> Option<Chart<'static>> {
    let newest = *facts.by_day.keys().next_back()?;
    let mut bins = [0_u64; DAYS_BACK.len()];
    for (day, pairs) in &facts.by_day {
        let back = i64::from(newest) - i64::from(*day);
        let bin = DAYS_BACK.iter().position(|(bound, _)| back <= *bound);
        bins[bin.unwrap_or(DAYS_BACK.len() - 1)] += pairs;
    }
    let bars = DAYS_BACK.iter().zip(bins);
    Some(Chart {
        title: "Age of the other documents",
        caption: match facts.without_day {
            0 => {
                "Days between the newest day of these documents and the day of the other document of each pair."
            }
            _ => {
                "Days between the newest day of these documents and the day of the other document of each pair. Pairs without a day are \
                 left out."
            }
        },
        of_bars: "days",
        of_values: "pairs",
        bars: bars
            .map(|((_, name), pairs)| Bar::of_count((*name).to_owned(), pairs))
            .collect(),
        scale: Scale::Linear,
        line: Some((0.0, date(newest))),
    })
}

fn bits(bit_shares: &BitShares) -> Chart<'static> {
    let bar = |bit: usize| Bar {
        label: if bit.is_multiple_of(8) {
            bit.to_string()
        } else {
            String::new()
        },
        name: format!("bit {bit}"),
        value: bit_shares.share(bit),
        text: format!("{:.2} %", 100.0 * bit_shares.share(bit)),
        distance: None,
    };
    Chart {
        title: "Balance of the bits",
        caption: "How many of a sample of the archive's fingerprints have each bit. Bits near one half tell most.",
        of_bars: "bit",
        of_values: "share of fingerprints",
        bars: (0..64).map(bar).collect(),
        scale: Scale::Share,
        line: None,
    }
}

fn write_samples(html: &mut String, report: &Report<'_>) {
    if report.samples.is_empty() {
        html.push_str("<p>There are no pairs.</p>\n");
        return;
    }
    let samples = &report.samples[..report.samples.len().min(MOST_SAMPLES)];
    let number = samples.len();
    *html += &format!(
        "<section><h2>Samples</h2><p>Of the largest groups, of pairs just above and below a similarity of {:.2}, and of each distance \
         and similarity.{}</p><div class=\"controls\"><label for=\"search\">Search ids and texts</label><input id=\"search\" \
         type=\"search\" autocomplete=\"off\"><output id=\"shown\" for=\"search\">{number} of {number} shown</output></div>\n",
        report.threshold,
        if report.looked_up && report.texts {
            " Words that differ are marked."
        } else {
            ""
        }
    );
    for shown in samples {
        write_sample(html, report, shown);
    }
    html.push_str("</section>\n");
}

fn write_sample(html: &mut String, report: &Report<'_>, shown: &Shown) {
    let pair = &shown.sample.pair;
    let texts = report.texts && html.len() < ENOUGH_BYTES;
    *html += &format!(
        "<article data-at=\"{}\"><h3><bdi>{}</bdi> <span class=\"why\">and</span> <bdi>{}</bdi></h3><p class=\"why\">{}</p>",
        pair.distance,
        escaped_start(&pair.new_id),
        escaped_start(&pair.base_id),
        escape(&reason(report, shown, texts))
    );
    match &shown.sides {
        Some(sides) if texts => {
            html.push_str("<div class=\"sides\">");
            let day = pair
                .base_day
                .map_or(String::new(), |day| format!(" of {}", date(day)));
            let (new, base) = match report.facts.kind {
                OutputKind::Decisions => ("dropped".to_owned(), format!("kept{day}")),
                _ => ("new document".to_owned(), format!("other document{day}")),
            };
            let [of_new, of_base] = &shown.templates;
            write_side(html, &new, &sides.left, "del", of_new.as_deref());
            write_side(html, &base, &sides.right, "ins", of_base.as_deref());
            html.push_str("</div>");
        }
        _ => {}
    }
    html.push_str("</article>\n");
}

/// Says why a sample is a pair, and why the page shows it. `texts` says whether its texts follow.
fn reason(report: &Report<'_>, shown: &Shown, texts: bool) -> String {
    let Sample { why, pair } = &shown.sample;
    let bits = match pair.distance {
        0 => "The fingerprints are equal".to_owned(),
        1 => "The fingerprints differ in 1 bit".to_owned(),
        more => format!("The fingerprints differ in {more} bits"),
    };
    let similarity = pair.similarity.map_or(String::new(), |similarity| {
        format!("; the similarity is {similarity:.2}")
    });
    let words = match &shown.sides {
        None if report.looked_up => "; the text of one of them is not in --documents".to_owned(),
        None => String::new(),
        Some(sides) => {
            let (differing, all) = (sides.differing_words(), sides.words());
            let first = if sides.cut { "the first " } else { "" };
            format!(
                "; {} of {first}{} words differ",
                count(differing),
                count(all)
            )
        }
    };
    let why = match why {
        Why::LargeGroup(size) => {
            format!(" One of the largest groups, of {} documents.", count(*size))
        }
        Why::Above => format!(
            " Of the pairs above a similarity of {:.2}, one of the nearest to it.",
            report.threshold
        ),
        Why::Below => format!(
            " Of the pairs below a similarity of {:.2}, one of the nearest to it.",
            report.threshold
        ),
        Why::Stratum => String::new(),
    };
    let left_out = if shown.sides.is_some() && report.texts && !texts {
        " The page is full, so the texts are left out."
    } else {
        ""
    };
    format!("{bits}{similarity}{words}.{why}{left_out}")
}

fn write_side(html: &mut String, name: &str, parts: &[Part], mark: &str, template: Option<&str>) {
    *html += &format!("<div><h4>{}</h4><p dir=\"auto\">", escape(name));
    let mut room = SIDE_CHARACTERS;
    for part in parts {
        if room == 0 {
            html.push_str(" …");
            break;
        }
        match part {
            Part::Hidden(words) => {
                *html += &format!(" <span class=\"hidden\">… {words} equal words …</span> ");
            }
            Part::Equal(words) => html.push_str(&escape(&take(words, &mut room))),
            Part::Differing(words) => {
                *html += &format!("<{mark}>{}</{mark}>", escape(&take(words, &mut room)));
            }
        }
    }
    html.push_str("</p>");
    if let Some(template) = template {
        *html += &format!(
            "<p class=\"template\" dir=\"auto\">Template, left out: {}</p>",
            escape(template)
        );
    }
    html.push_str("</div>");
}

/// The first `room` characters of a text; subtracts their number from `room`.
fn take(text: &str, room: &mut usize) -> String {
    let taken: String = text.chars().take(*room).collect();
    *room -= taken.chars().count();
    taken
}
