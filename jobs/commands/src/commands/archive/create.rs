//! `dedup-job archive create`.

use ::archive::{Archive, RunDefaults, frequencies};
use engine::Profile;
use engine::recipe::OptionFile;

use super::info;
use crate::args::{CommonArgs, CreateArgs};
use crate::commands::idf;
use crate::exit::{Failure, usage};
use crate::process::{self, Process};

/// Creates an archive; with --learn, first counts the document frequencies of the documents there.
pub(super) fn run(common: &CommonArgs, args: &CreateArgs) -> Result<(), Failure> {
    let CreateArgs { learn, columns, .. } = args;
    if let (true, Some(option)) = (learn.is_empty(), columns.of_files()) {
        return usage(format!(
            "{option}: it says how files are read, here those of --learn; give it to `run`"
        ));
    }
    let created = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let location = process.locate(&args.dir)?;
        let mut options = args.spec.spec_options(stores).await?;
        if !learn.is_empty() {
            // Learning takes long, so first check that an archive can be created there.
            Archive::require_free(&location).await?;
            let features = &args.spec.features;
            let (model, learnt) =
                idf::learn(process, learn, columns, features, idf::DEFAULT_TERMS).await?;
            let name = "--learn".to_owned();
            let bytes = frequencies::encode(&name, model.spec(), &learnt.frequencies)?.into();
            options.idf = Some(OptionFile { name, bytes });
            // If nothing else was asked for, that of the documents: of pages, the visible text.
            options.markup = options.markup.or(Some(model.spec().markup));
        }
        let profile = args.profile.unwrap_or(Profile::Sharp);
        options.sketch = options.sketch.or(Some(profile.sketch()));
        let options = options.for_profile(profile);
        let (model, files) = options.model_and_files()?;
        let spec = model.spec();
        // Those of --learn are of other files.
        let named = Some(columns).filter(|_| learn.is_empty());
        let defaults = RunDefaults {
            id_column: named.and_then(|columns| columns.id_column.clone()),
            text_column: named.and_then(|columns| columns.text_column.clone()),
            ..profile.run_defaults(spec.sketch)
        };
        let kept = args.decisions || profile.has_kept();
        let created = Archive::create(&location, args.id_type, kept, spec, &files, &defaults);
        let archive = created.await?;
        info::Known::read(&archive).await
    })?;
    if common.quiet && !common.json {
        return Ok(());
    }
    info::print_info(common, &args.dir, &created, None)
}
