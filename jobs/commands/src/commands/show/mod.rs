//! `dedup-job show`: pairs side by side, with the words that differ marked.

mod layout;
mod pager;

use std::collections::HashSet;

use documents::DocumentId;
use engine::output::{ReadRow, read_rows};
use engine::template::{CutText, CutTexts};
use serde_json::json;
use simhash::hash::murmur3_low64;

use self::layout::Style;
use super::pairs::{Pair, Smallest};
use super::report::sources::source_of_row;
use super::{ShownDocuments, check_near, texts_to_show};
use crate::args::{CommonArgs, ShowArgs, SortPairs};
use crate::exit::{Failure, usage};
use crate::printing::{count, date, print};
use crate::process::{self, Process};

/// Pairs that are shown unless -n says otherwise.
const DEFAULT_COUNT: u32 = 10;

pub fn run(common: &CommonArgs, args: &ShowArgs) -> Result<(), Failure> {
    let Some(path) = &args.pairs else {
        return usage("the pairs are missing: name the output of `dedup-job run`; see --help");
    };
    if let Some(near) = args.near {
        check_near(near)?;
    }
    let (pairs, total, texts) = process::run(common, async |process: &Process| {
        let location = process.stores().locate(path)?;
        let mut chosen = Chosen::new(args);
        read_rows(&location, |row| chosen.add(&row)).await?;
        let total = chosen.read;
        if !chosen.has_similarities
            && total > 0
            && matches!(chosen.key, Key::Similarity | Key::Near(_))
        {
            tracing::warn!(
                "{path}: no pair has a similarity; a run with --verify writes similarities"
            );
        }
        let pairs = chosen.pairs.into_items();
        let texts = find_texts(process, args, &pairs).await?;
        Ok((pairs, total, texts))
    })?;
    if common.json {
        let of_archive = args.archive.is_some();
        let line = |pair| as_json(pair, texts.as_ref(), of_archive);
        let lines = pairs.iter().map(line);
        return print(&lines.collect::<String>());
    }
    let style = Style::of_stdout();
    let mut text = String::new();
    for (number, pair) in (1..).zip(&pairs) {
        layout::write_pair(&mut text, number, pair, texts.as_ref(), &style);
    }
    if total > pairs.len() as u64 {
        text.push_str(&format!(
            "{} of {} pairs; -n shows more\n",
            pairs.len(),
            count(total)
        ));
    } else if total == 0 {
        text.push_str(match &args.source {
            Some(_) => "no pairs of this source\n",
            None => "no pairs\n",
        });
    }
    pager::print(&text)
}

/// The texts of the pairs' documents; `None` without --documents.
async fn find_texts(
    process: &Process,
    args: &ShowArgs,
    pairs: &[Pair],
) -> Result<Option<CutTexts>, Failure> {
    if args.documents.is_empty() {
        return Ok(None);
    }
    let documents = ShownDocuments {
        paths: &args.documents,
        columns: args.columns.text_columns(),
        markup: args.markup,
        archive: args.archive.as_deref(),
    };
    let ids = pairs.iter().flat_map(Pair::ids);
    let wanted = ids.map(|id| DocumentId::Text(id.into())).collect();
    let found = texts_to_show(process, documents, wanted, &HashSet::new()).await?;
    Ok(Some(found))
}

fn as_json(pair: &Pair, texts: Option<&CutTexts>, of_archive: bool) -> String {
    let [new, base] = texts.map_or([None; 2], |texts| texts.of_pair(pair.ids()));
    let content = |text: Option<&CutText>| text.map(|text| text.content.clone());
    let template = |text: Option<&CutText>| text.map(|text| text.template.clone());
    let mut value = json!({
        "new_id": pair.new_id,
        "base_id": pair.base_id,
        "distance": pair.distance,
        "base_day": pair.base_day.map(date),
        "similarity": pair.similarity,
        "new_text": content(new),
        "base_text": content(base),
    });
    if of_archive {
        value["new_template"] = json!(template(new));
        value["base_template"] = json!(template(base));
    }
    format!("{value}\n")
}

/// The pairs to show: the first ones by the order that the options ask for.
struct Chosen {
    key: Key,
    /// The only source whose duplicates are shown.
    source: Option<String>,
    pairs: Smallest<i64, Pair>,
    /// Pairs read.
    read: u64,
    has_similarities: bool,
}

/// What pairs are ordered by.
enum Key {
    /// Their order in the file.
    File,
    Similarity,
    Distance,
    /// How near their similarity is to this one.
    Near(f64),
    /// A hash of their ids.
    Random,
}

/// An integer of the order that `f64::total_cmp` has.
fn ordered(key: f64) -> i64 {
    let bits = key.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

impl Chosen {
    fn new(args: &ShowArgs) -> Self {
        let key = match (args.near, args.sort) {
            _ if args.random.is_some() => Key::Random,
            (Some(near), _) => Key::Near(near),
            (None, Some(SortPairs::Similarity)) => Key::Similarity,
            (None, Some(SortPairs::Distance)) => Key::Distance,
            (None, None) => Key::File,
        };
        let most = args.random.or(args.count).unwrap_or(DEFAULT_COUNT);
        Self {
            key,
            source: args.source.clone(),
            pairs: Smallest::new(most as usize),
            read: 0,
            has_similarities: false,
        }
    }

    fn add(&mut self, row: &ReadRow<'_>) {
        let Some(read) = row.pair else {
            return;
        };
        let is_other = |source: &String| *source != source_of_row(row);
        if self.source.as_ref().is_some_and(is_other) {
            return;
        }
        self.read += 1;
        self.has_similarities |= read.similarity.is_some();
        // A pair without a similarity comes last.
        let key = match self.key {
            Key::File => 0.0,
            Key::Similarity => read
                .similarity
                .map_or(f64::INFINITY, |similarity| -similarity),
            Key::Distance => f64::from(read.distance),
            Key::Near(near) => read
                .similarity
                .map_or(f64::INFINITY, |similarity| (similarity - near).abs()),
            Key::Random => {
                let ids = [row.id, read.base_id].join("\n");
                murmur3_low64(ids.as_bytes(), 0) as f64
            }
        };
        self.pairs.offer(ordered(key), || Pair::read(row));
    }
}
