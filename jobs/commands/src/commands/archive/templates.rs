//! `dedup-job archive templates`: what an archive remembers of the template of a source.

use ::archive::Archive;
use engine::run::OpenedArchive;
use engine::template::{SharedPassage, archive_memory, shared_passages};
use serde_json::json;
use simhash::Template;
use template::{Remembered, domain, source_said};

use crate::args::{CommonArgs, TemplatesArgs};
use crate::exit::{Failure, usage};
use crate::printing::{count, print, print_json, visible};
use crate::process::{self, Process};

pub(super) fn run(common: &CommonArgs, args: &TemplatesArgs) -> Result<(), Failure> {
    let (dir, documents) = (&args.dir, &args.documents);
    let name = source_said(&args.source).unwrap_or(args.source.as_str().into());
    let (name, known, passages) = process::run(common, async |process: &Process| {
        let archive = Archive::open(&process.locate(dir)?).await?;
        let memory = archive_memory(&archive).await?;
        let without_www = name.strip_prefix("www.").unwrap_or(&name);
        let below = match archive.spec().template {
            Template::Domains => domain(without_www),
            Template::On | Template::Off => without_www,
        };
        let names = [&*name, below].into_iter();
        let mut known = names.filter_map(|name| memory.sources.get_key_value(name));
        let Some((name, known)) = known.next() else {
            return usage(format!(
                "{dir} remembers no source {name:?}; it remembers {} sources",
                count(memory.sources.len() as u64)
            ));
        };
        let passages = if documents.is_empty() {
            Vec::new()
        } else {
            let columns = args.columns.text_columns();
            let opened = OpenedArchive::Archive(Box::new(archive));
            let context = &process.context;
            shared_passages(context, documents, &columns, &opened, &memory, name).await?
        };
        Ok((name.to_string(), known.clone(), passages))
    })?;
    if common.json {
        return print_json(&as_json(&name, &known, &passages));
    }
    print(&as_text(&name, &known, &passages, !documents.is_empty()))
}

fn as_json(name: &str, known: &Remembered, passages: &[SharedPassage]) -> serde_json::Value {
    let passages = passages.iter().map(|passage| {
        json!({ "passage": passage.text, "documents": passage.documents, "of_many_sources": passage.of_many_sources })
    });
    json!({
        "source": name,
        "pages": known.learnt.pages_count(),
        "remembered_passages": known.learnt.passages.len(),
        "template_passages": known.learnt.template_passages(),
        "passages": passages.collect::<serde_json::Value>(),
    })
}

fn as_text(
    name: &str,
    known: &Remembered,
    passages: &[SharedPassage],
    has_documents: bool,
) -> String {
    let mut text = format!(
        "{}: {} passages are template, {} are remembered of some {} recent pages\n",
        visible(name),
        count(known.learnt.template_passages() as u64),
        count(known.learnt.passages.len() as u64),
        known.learnt.pages_count()
    );
    if !has_documents {
        text.push_str("  the archive has no texts: --documents PATH shows the passages\n");
    }
    for passage in passages {
        let many = if passage.of_many_sources {
            ", of many sources"
        } else {
            ""
        };
        text += &format!(
            "  {:>7}{many}  {}\n",
            count(passage.documents),
            visible(&passage.text)
        );
    }
    text
}
