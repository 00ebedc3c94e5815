//! Builds settings of the libraries from options that several commands share, and reads the files
//! that those options name.

use documents::{Columns, CrawlId, CrawlRecords};
use engine::SpecOptions;
use engine::recipe::OptionFile;
use storage::{StoreOptions, Stores};

use crate::args::{ColumnArgs, FeatureArgs, IdFrom, SpecArgs, StorageArgs};

impl StorageArgs {
    /// The options of object stores, with their defaults.
    pub fn options(&self) -> StoreOptions {
        let default = StoreOptions::default();
        StoreOptions {
            endpoint: self.endpoint.clone(),
            allow_http: self.allow_http,
            retries: self.retries.map_or(default.retries, usize::from),
            request_timeout: self.request_timeout.unwrap_or(default.request_timeout),
            deadline: self.retry_deadline.unwrap_or(default.deadline),
        }
    }
}

impl ColumnArgs {
    /// The columns to read.
    pub fn columns(&self) -> Columns {
        Columns {
            id: self.id_column.clone(),
            crawl: CrawlRecords {
                id: match self.crawl.id_from {
                    Some(IdFrom::Url) => CrawlId::Url,
                    Some(IdFrom::Record) | None => CrawlId::Record,
                },
                statuses: self.crawl.status.clone(),
                check_digests: self.crawl.check_digests,
                limits: None,
            },
            text: self.text_column.clone(),
            fingerprint: self.fingerprint_column.clone(),
            delimiter: self.delimiter,
            quote: self.quote,
            charset: self.charset.clone(),
            ..Columns::default()
        }
    }

    /// The columns to read for a command that needs texts.
    pub fn text_columns(&self) -> Columns {
        Columns {
            texts_only: true,
            ..self.columns()
        }
    }
}

impl FeatureArgs {
    /// The fields of a spec that the options set; reads the file of stop words.
    pub async fn spec_options(&self, stores: &Stores) -> engine::Result<SpecOptions> {
        Ok(SpecOptions {
            tokenizer: self.tokenizer,
            normalize: self.normalize,
            fold: self.fold,
            markup: self.markup,
            stop_words: read(stores, self.stop_words.as_deref()).await?,
            ..SpecOptions::default()
        })
    }
}

impl SpecArgs {
    /// The fields of a spec that the options set; reads the files of stop words and document
    /// frequencies.
    pub async fn spec_options(&self, stores: &Stores) -> engine::Result<SpecOptions> {
        Ok(SpecOptions {
            weight: self.weight,
            min_features: self.min_features,
            seed: self.hash_seed,
            short_texts: self.short_texts,
            template: self.template,
            sketch: self.sketch,
            idf: read(stores, self.idf.as_deref()).await?,
            idf_power: self.idf_power,
            ..self.features.spec_options(stores).await?
        })
    }
}

async fn read(stores: &Stores, path: Option<&str>) -> engine::Result<Option<OptionFile>> {
    match path {
        Some(path) => OptionFile::read(stores, path).await.map(Some),
        None => Ok(None),
    }
}
