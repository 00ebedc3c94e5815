//! What a run reads, opened: the archive, the batch's documents, and the texts that verification needs.

use archive::{ArchiveError, DecisionSettings, Existing, IdType, Pin};
use chrono::NaiveDate;
use datafusion::prelude::SessionContext;
use simhash::{Measure, Model, Spec, Template};
use storage::Location;

use super::base::Base;
use super::decided_by::{decision_settings, pins_digest};
use super::opened::OpenedArchive;
use super::{Appended, Run, RunSettings};
use crate::decide::{Decide, OnUpdate, typed_pins};
use crate::error::{EngineError, Result};
use crate::fingerprint::Beside;
use crate::job::{Job, Pins};
use crate::profile::{Against, CompareSettings, Profile};
use crate::progress::Stage;
use crate::recipe::{Recipe, SpecOptions};
use crate::template::{self, BatchTemplates};
use crate::verify::{Verifier, Verify};
use documents::{Columns, Documents, KeptFiles, Prefer};

/// Opens a batch's documents, and chooses the recipe of their fingerprints and the type of their ids: those of the archive
/// if there is one; without one, `profile` says what becomes of short texts.
pub async fn open_batch(
    context: &SessionContext,
    new: &[String],
    columns: &Columns,
    opened: &OpenedArchive,
    options: &SpecOptions,
    profile: Profile,
) -> Result<(Documents, Recipe, IdType)> {
    let mut documents = Documents::open(context, new, &opened.columns(columns)).await?;
    let without_archive = &options.for_documents(&documents);
    if let Some((first, others)) = documents.files_with_row_ids() {
        let others = match others {
            0 => String::new(),
            others => format!(" and {others} more files"),
        };
        tracing::warn!(
            "{first}{others}: no id column found, so each document gets the id FILE:ROW; if there is an id column, name it with --id-column"
        );
    }
    let declared = documents.spec()?;
    let name = opened.name();
    let ready = documents.has_fingerprints();
    let recipe = match (opened.spec(), declared) {
        (Some(spec), Some((file, declared))) if differs_by_template(spec, &declared) => {
            if documents.have_sources(context).await? {
                return Err(EngineError::Configuration(format!(
                    "{file}: its fingerprints are of texts with the templates of their sources, which {name} leaves out; give the texts, or take an archive that was created with --template off"
                )));
            }
            Recipe::Ready(spec.clone())
        }
        (Some(spec), Some((file, declared))) if *spec != declared => {
            return Err(ArchiveError::SpecMismatch {
                left: name,
                right: file,
                differences: spec.differences(&declared),
            }
            .into());
        }
        (Some(spec), _) if ready => {
            options.check(&name, spec)?;
            if !spec.sketch.is_none() && !documents.has_sketches() {
                return Err(EngineError::bad_data(
                    documents.given(),
                    format!(
                        "the fingerprints of {name} have sketches, and these have none: give the texts, or make the fingerprints by `dedup-job fingerprint --sketch {}`",
                        spec.sketch
                    ),
                ));
            }
            Recipe::Ready(spec.clone())
        }
        (Some(spec), _) => match opened {
            OpenedArchive::Archive(archive) => {
                Recipe::Texts(options.model_from_archive(archive).await?)
            }
            OpenedArchive::Plain(_) => Recipe::Texts(options.model_of_plain_files(&name, spec)?),
        },
        (None, Some((file, declared))) => {
            options.check(&file, &declared)?;
            Recipe::Ready(declared)
        }
        (None, None) if ready => Recipe::Ready(without_archive.model()?.spec().clone()),
        (None, None) => {
            if opened.id_type().is_some() {
                tracing::warn!(
                    "the files of --base do not say under which spec their fingerprints were made; the spec that --json shows is assumed"
                );
            }
            // Plain files of fingerprints have none of short texts.
            let profile = match opened.id_type() {
                Some(_) => Profile::Paper,
                None => profile,
            };
            Recipe::Texts(without_archive.for_profile(profile).model()?)
        }
    };
    if let Recipe::Texts(model) = &recipe {
        let pages = match opened.spec() {
            Some(spec) => options.pages(&documents, &name, spec)?,
            None => without_archive.pages(&documents, &name, model.spec())?,
        };
        documents.read_pages(pages);
    }
    if recipe.spec().template == Template::Domains {
        documents.source_by_domains();
    }
    let id_type = opened.id_type().or(documents.id_type());
    Ok((documents, recipe, id_type.unwrap_or(IdType::String)))
}

/// Whether texts have the same fingerprints under an archive's `spec` and under that of ready fingerprints, but for templates,
/// which only the archive leaves out.
fn differs_by_template(spec: &Spec, ready: &Spec) -> bool {
    let without = Spec {
        template: Template::Off,
        ..spec.clone()
    };
    *spec != *ready && without == *ready
}

pub(super) struct Inputs {
    pub(super) base: Base,
    pub(super) documents: Documents,
    pub(super) day: Option<NaiveDate>,
    pub(super) recipe: Recipe,
    pub(super) id_type: IdType,
    pub(super) pins: Vec<Pin>,
    pub(super) compare: CompareSettings,
    pub(super) verifier: Option<Verifier>,
    /// Compares dropped documents, if an audit is asked for.
    pub(super) auditor: Option<Verifier>,
    /// What to decide about the documents; `None` for nothing.
    pub(super) decide: Option<Decide>,
    /// What the archive notes about the decisions of the batch's day; `None` if it notes nothing.
    pub(super) day_decisions: Option<DecisionSettings>,
    /// The files of the kept documents; `None` if they are not copied.
    pub(super) kept_files: Option<KeptFiles>,
}

impl Inputs {
    /// Opens all inputs that the settings name, and checks that they agree.
    pub(super) async fn open(run: Run<'_>) -> Result<Self> {
        let (context, settings) = (run.context, run.settings);
        run.enter(Stage::Open);
        let columns = &settings.columns;
        let version = run.job().and_then(Job::archive_version);
        let mut base = Base::open(run, &settings.base, columns, version).await?;
        let is_documents = base.is_documents();
        let opened = &base.opened;
        let mut decide = settings.decide.clone();
        if let Some(appended) = settings.append {
            if settings.base.len() > 1 {
                return Err(EngineError::Usage(
                    "--append commits to one archive: give one --base".into(),
                ));
            }
            let OpenedArchive::Archive(archive) = opened else {
                return Err(EngineError::Usage(format!(
                    "--append needs an archive, and {} is none; make one with `dedup-job archive create`",
                    settings.base.join(" and ")
                )));
            };
            if archive.has_kept() {
                if !settings.within {
                    return Err(EngineError::Usage(format!(
                        "{} has decisions, so the documents of an appended batch must be compared with each other: leave out --no-within",
                        opened.name()
                    )));
                }
                decide.get_or_insert_default();
            }
            if appended == Appended::All && !archive.has_kept() && decide.is_some() {
                tracing::warn!(
                    "{} has no decisions: it does not remember which documents were dropped, so later ones are compared with these, too; `archive create` makes an archive that does, without --profile paper or with --decisions",
                    opened.name()
                );
            }
            archive.preflight().await?;
        }
        if decide.is_none() && settings.limits.need_decisions() {
            return Err(EngineError::Usage(
                "--max-dropped and --refuse-repeats need decisions: --decisions, --kept, or --append to an archive with decisions".into(),
            ));
        }
        if decide.is_none() && columns.prefer != Prefer::default() {
            return Err(EngineError::Usage(format!(
                "--prefer chooses between near-duplicates, and nothing is decided: {} has no decisions",
                opened.name()
            )));
        }
        if let (OpenedArchive::Plain(_), true) = (opened, settings.on_update != OnUpdate::Both) {
            return Err(EngineError::Usage(format!(
                "--on-update {} needs an archive: {} is none, and says no documents of other days",
                settings.on_update,
                opened.name()
            )));
        }
        let has_word = !settings.pins.is_empty() || settings.on_update != OnUpdate::Both;
        if decide.is_none() && has_word {
            return Err(EngineError::Usage(format!(
                "--pins and --on-update are about decisions, and nothing is decided: {} has none",
                opened.name()
            )));
        }
        if decide.is_none() && (settings.drop_empty || settings.audit.is_some()) {
            return Err(EngineError::Usage(
                "--audit and --drop-empty need decisions: --decisions, --kept, or --append to an archive with decisions".into(),
            ));
        }
        let (new, options) = (&settings.new, &settings.spec_options);
        let profile = settings.compare.profile.unwrap_or(Profile::Sharp);
        let template = match opened.spec() {
            Some(spec) => spec.template,
            None => options.template.unwrap_or(profile.template()),
        };
        let columns = &Columns {
            with_sources: decide.is_some() || !template.is_off(),
            row_ids: columns.row_ids || is_documents,
            ..columns.clone()
        };
        let (mut documents, recipe, id_type) =
            open_batch(context, new, columns, opened, options, profile).await?;
        let id_type = base.id_type(id_type);
        let pins = typed_pins(settings.pins_from.as_deref(), &settings.pins, id_type)?;
        if let Some(of_base) = &mut base.documents {
            prepare_base(of_base, &documents, &recipe, options)?;
        }
        let opened = &base.opened;
        if settings.drop_empty && recipe.spec().short_texts.is_unmarked() {
            return Err(EngineError::Usage(
                "--drop-empty: texts that are too short to compare have no fingerprint here, either, and would be dropped with the empty ones; leave out --profile paper, and take an archive made without it".into(),
            ));
        }
        match run.job().and_then(Job::cuts) {
            Some(cuts) => documents.cut_as_before(&cuts),
            None => {
                let threads = context.state().config().target_partitions();
                let readers = run.job().map_or(threads, Job::readers);
                documents.cut(context, readers).await?;
            }
        }
        let day = match (run.job().and_then(Job::day), settings.day) {
            (Some(day), _) => Some(day),
            (None, Some(day)) => Some(day.resolve(context, &mut documents).await?),
            (None, None) => None,
        };
        let rerun = match (opened, day, settings.existing) {
            (OpenedArchive::Archive(archive), Some(day), Existing::Keep) => {
                let committed = archive.committed(settings.day_batch(day)).await?;
                committed.map(|committed| archive.run_defaults_at(committed.base_version))
            }
            _ => None,
        };
        let mut compare = match rerun {
            // A rerun of a day compares as its first run did.
            Some(defaults) => settings.compare.resolve(Against::Archive(defaults))?,
            None => opened.compare(&settings.compare, &recipe)?,
        };
        let by_texts = |verify: &&mut Verify| !verify.is_by_sketch();
        if let Some(verify) = compare.verify.as_mut().filter(by_texts) {
            verify.base_text.extend(base.paths.iter().cloned());
        }
        let day_decisions = match (opened, settings.append) {
            (OpenedArchive::Archive(archive), Some(appended)) => {
                let only_kept = appended == Appended::Kept;
                (archive.has_kept() || only_kept).then(|| DecisionSettings {
                    only_kept,
                    settings: decision_settings(settings, &compare),
                })
            }
            _ => None,
        };
        let kept = decide.as_ref().and_then(|decide| decide.kept.as_ref());
        let kept_files = match kept {
            Some(kept) => {
                let stores = &run.resources.stores;
                Some(documents.kept_files(stores, new, kept).await?)
            }
            None => None,
        };
        // The verifier reads texts, and needs no preferences and no carried columns.
        let columns = &Columns {
            prefer: Prefer::default(),
            carried: Vec::new(),
            row_ids: columns.row_ids || !base.paths.is_empty(),
            ..opened.columns(columns)
        };
        let verifier = match &compare.verify {
            Some(verify) if verify.is_by_sketch() => {
                if recipe.spec().sketch.is_none() {
                    let without = match settings.base.first() {
                        Some(_) => format!("{} has no sketches", opened.name()),
                        None => "sketches are in archives, and there is no --base".to_owned(),
                    };
                    return Err(EngineError::Usage(format!(
                        "--verify sketch: {without}; `dedup-job archive create --sketch 128` makes an archive that has them"
                    )));
                }
                None
            }
            Some(verify) => {
                Some(open_texts(run, verify.clone(), opened, &recipe, &documents, columns).await?)
            }
            None => None,
        };
        if verifier.is_some() && settings.pairs_by_class && run.job().is_some() {
            return Err(EngineError::Usage(
                "--pairs classes: the parts of a job cannot tell documents apart by their texts: take sketches, or --verify none".into(),
            ));
        }
        let auditor = match settings.audit {
            Some(_) => {
                let verify = Verify {
                    measure: Measure::Jaccard,
                    min_similarity: 0.0,
                    base_text: [&*settings.compare.base_text, &*base.paths].concat(),
                };
                Some(open_texts(run, verify, opened, &recipe, &documents, columns).await?)
            }
            None => None,
        };
        if let Some(job) = run.job() {
            // Behind all checks: a job that is refused leaves nothing.
            let texts = [&verifier, &auditor].into_iter().flatten();
            let texts = texts.filter_map(|texts| texts.archive.as_ref());
            let base = opened.pinned_files().await?;
            let inputs = documents.locations().chain(&base);
            let inputs: Vec<&Location> =
                inputs.chain(texts.flat_map(Documents::locations)).collect();
            let pins = Pins {
                archive_version: opened.version(),
                day,
                spec: recipe.spec().digest(),
                inputs: documents::file_versions(inputs).await?,
                prefer: settings.columns.prefer.to_string(),
                pins: pins_digest(&settings.pins),
                cuts: documents.cuts(),
            };
            job.pin(pins).await?;
        }
        Ok(Self {
            base,
            documents,
            day,
            recipe,
            id_type,
            pins,
            compare,
            verifier,
            auditor,
            decide,
            day_decisions,
            kept_files,
        })
    }

    /// Finds the templates of the batch, for the `attempt`th time but for the first, and leaves them out of all texts.
    pub(super) async fn leave_out_templates(
        &mut self,
        run: Run<'_>,
        attempt: usize,
    ) -> Result<Option<BatchTemplates>> {
        self.documents.leave_out(None);
        let name = match attempt {
            0 => "pages".to_owned(),
            again => format!("pages-{again}"),
        };
        // A page of the base has the same template as one of the batch.
        let of_base = self.base.documents.as_ref();
        let both = of_base.map(|of_base| self.documents.with_others(of_base));
        let batch = template::Batch {
            context: run.context,
            documents: both.as_ref().unwrap_or(&self.documents),
            recipe: &self.recipe,
            id_type: self.id_type,
            archive: self.base.opened.archive(),
            day: self.day.map(|day| run.settings.day_batch(day)),
            existing: run.settings.existing,
        };
        let found = batch.find(run.job().map(|job| (job, &*name))).await?;
        if let Some(templates) = &found {
            templates.leave_out(&mut self.documents, &mut self.recipe);
            let own = &templates.left_out;
            for verifier in self.verifier.iter_mut().chain(&mut self.auditor) {
                match self.base.opened.archive() {
                    // The documents of `--base` were read without the templates of the batch.
                    Some(archive) if verifier.archive.is_some() && self.base.paths.is_empty() => {
                        verifier.leave_out(own, &templates.of_archive(archive).await?);
                    }
                    _ => verifier.leave_out(own, own),
                }
            }
        }
        Ok(found)
    }

    /// Whether the places of documents in the inputs are needed once they have fingerprints.
    pub(super) fn need_keys(&self, settings: &RunSettings) -> bool {
        self.decide.is_some() || settings.pairs_by_class && self.verifier.is_some()
    }

    /// Which columns are made with the fingerprints.
    pub(super) fn beside_fingerprints(&self, settings: &RunSettings) -> Beside {
        let are_texts_compared = settings.within
            && self.decide.is_some()
            && self.verifier.as_ref().is_some_and(|verifier| {
                verifier.verify.measure == Measure::Jaccard && verifier.by_model
            });
        if !self.need_keys(settings) {
            Beside::Nothing
        } else if are_texts_compared {
            Beside::DecisionsAndBitmaps
        } else {
            Beside::Decisions
        }
    }

    /// Fingerprints the documents that the batch is compared with, without the templates that were found in the batch.
    pub(super) async fn fingerprint_base(&mut self, run: Run<'_>) -> Result<()> {
        let Some(mut documents) = self.base.documents.take() else {
            return Ok(());
        };
        documents.leave_out(self.documents.left_out());
        let others = &mut self.base.others;
        others
            .fingerprint(run, documents, &self.recipe, self.id_type)
            .await
    }

    /// Makes the file with a wrong cut whole again, as [`Documents::uncut`].
    pub(super) fn uncut(&mut self, wrong_cut: Option<(&str, u64)>) -> bool {
        let is_uncut = self.documents.uncut(wrong_cut);
        for verifier in self.verifier.iter_mut().chain(&mut self.auditor) {
            verifier.cut_as(&self.documents);
        }
        is_uncut
    }
}

/// Checks the documents that the batch is compared with, and says how their pages are read.
fn prepare_base(
    of_base: &mut Documents,
    batch: &Documents,
    recipe: &Recipe,
    options: &SpecOptions,
) -> Result<()> {
    if let Recipe::Ready(_) = recipe {
        return Err(EngineError::Usage(format!(
            "--base {}: these are documents, and the batch has fingerprints: make those of the documents, too, by `dedup-job fingerprint`",
            of_base.given()
        )));
    }
    if let Some(file) = batch.shared_file(of_base) {
        return Err(EngineError::Usage(format!(
            "{file}: this file is in the batch and below --base {}: each of its documents would repeat itself",
            of_base.given()
        )));
    }
    if recipe.spec().markup.is_none() && of_base.have_pages() && options.markup.is_none() {
        return Err(EngineError::Usage(format!(
            "--base {}: these are pages, and the batch is compared as it is, with its markup: say how texts are read by --markup, such as --markup text",
            of_base.given()
        )));
    }
    let pages = options.pages(of_base, "--base", recipe.spec())?;
    of_base.read_pages(pages);
    if recipe.spec().template == Template::Domains {
        of_base.source_by_domains();
    }
    Ok(())
}

/// Opens the texts of `documents`, and of the archive, to compare them as `verify` says.
async fn open_texts(
    run: Run<'_>,
    verify: Verify,
    opened: &OpenedArchive,
    recipe: &Recipe,
    documents: &Documents,
    columns: &Columns,
) -> Result<Verifier> {
    let options = &run.settings.spec_options;
    // The model normalizes the texts and, for the cosine, weighs their features.
    let model = match (recipe, opened) {
        (Recipe::Texts(model), _) => model.clone(),
        // Other measures weigh no features, so they need no document frequencies or stop words.
        (Recipe::Ready(spec), _) if verify.measure != Measure::Cosine => {
            let unweighted = Spec {
                idf: None,
                stop_words: None,
                ..spec.clone()
            };
            Model::plain(unweighted).map_err(EngineError::internal)?
        }
        (Recipe::Ready(_), OpenedArchive::Archive(archive)) => archive.model().await?,
        (Recipe::Ready(spec), OpenedArchive::Plain(files)) => {
            options.model_of_plain_files(&files.name, spec)?
        }
    };
    let pages = options.pages_under(model.spec());
    let model = (model, matches!(recipe, Recipe::Texts(_)));
    Verifier::open(run.context, verify, model, documents, columns, pages).await
}
