//! The plan of a round: its maps, and the items of each part.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use simhash::{Markup, Measure};

use super::cut::cut;
use super::{DocumentsMap, ModelPlan, ProbeMap, SharedFile, VerifyMap};
use crate::error::{EngineError, Result};
use crate::work_items::WorkItem;
use documents::SplitPlan;

/// A map of a run, with all that its parts need besides their items.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Map {
    /// Documents to pages, by which the templates of sources are found.
    Pages {
        source: DocumentsMap,
        markup: Markup,
    },
    /// Documents to fingerprints.
    Fingerprint {
        source: DocumentsMap,
        model: ModelPlan,
        decision_columns: bool,
    },
    /// Fingerprints to pairs.
    Probe(Box<ProbeMap>),
    /// Documents to digests of their texts.
    Digest {
        source: DocumentsMap,
        model: ModelPlan,
        measure: Measure,
        /// The positions of the documents.
        wanted: SharedFile,
    },
    /// Pairs to those whose texts are similar.
    Verify(Box<VerifyMap>),
    /// Documents to the columns that go along to decisions.
    Carried {
        source: DocumentsMap,
        /// An Arrow IPC stream without rows: the schema of the answers.
        schema: SharedFile,
    },
    /// Files to copies of their kept documents.
    Copy {
        source: DocumentsMap,
        /// The positions of the kept documents.
        kept: SharedFile,
    },
}

/// A piece of a map's work.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Item {
    /// A split of a file of documents.
    Documents(SplitPlan),
    Probe(WorkItem),
    /// Pairs, by their rows in the map's file.
    Pairs {
        first: u64,
        /// One past the last.
        end: u64,
    },
    /// A file of documents, by its number.
    File(usize),
}

/// A map with its items and their costs in core seconds, before it is cut into parts.
pub(crate) struct Planning {
    pub(crate) map: Map,
    pub(crate) items: Vec<(Item, f64)>,
    /// Bytes that all parts read.
    pub(crate) bytes: u64,
}

/// A map of a round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedMap {
    /// Names it among the maps of a run.
    pub(super) name: String,
    pub(super) map: Map,
    pub(super) parts: Vec<Vec<Item>>,
    seconds: f64,
    bytes: u64,
    /// Digest of all that its answers depend on.
    pub(super) digest: String,
}

/// A round: maps that do not need each other's answers. Without a map, it says that no round follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) maps: Vec<PlannedMap>,
}

impl Map {
    fn label(&self) -> &'static str {
        match self {
            Self::Pages { .. } => "pages",
            Self::Fingerprint { .. } => "fingerprint",
            Self::Probe(_) => "probe",
            Self::Digest { .. } => "digest",
            Self::Verify(_) => "verify",
            Self::Carried { .. } => "columns",
            Self::Copy { .. } => "copy",
        }
    }
}

impl Planning {
    /// Cuts the map into parts.
    pub(super) fn cut(self, name: &str, parts: Option<u64>) -> Result<PlannedMap> {
        let Self { map, items, bytes } = self;
        let seconds = items.iter().map(|(_, cost)| cost).sum();
        let parts = cut(items, parts);
        let all = serde_json::to_vec(&(name, &map, &parts));
        let all = all.map_err(EngineError::internal)?;
        Ok(PlannedMap {
            name: name.to_owned(),
            digest: storage::hex(&Sha256::digest(all)),
            map,
            parts,
            seconds,
            bytes,
        })
    }
}

impl Round {
    /// Whether no round follows the one before.
    pub(super) fn is_last(&self) -> bool {
        self.maps.is_empty()
    }

    pub(super) fn parts(&self) -> u32 {
        self.maps.iter().map(|map| map.parts.len() as u32).sum()
    }

    /// The map called `name`, with the number of its first part.
    pub(super) fn map(&self, name: &str) -> Option<(u32, &PlannedMap)> {
        self.numbered_maps().find(|(_, map)| map.name == name)
    }

    /// The map that has a part, and the part's number in the map.
    pub(super) fn map_of_part(&self, part: u32) -> Option<(&PlannedMap, usize)> {
        let mut maps = self.numbered_maps();
        maps.find_map(|(first, map)| {
            let number = part.checked_sub(first)? as usize;
            (number < map.parts.len()).then_some((map, number))
        })
    }

    /// Its maps, each with the number of its first part.
    pub(super) fn numbered_maps(&self) -> impl Iterator<Item = (u32, &PlannedMap)> {
        self.maps.iter().scan(0, |next, map| {
            let first = *next;
            *next += map.parts.len() as u32;
            Some((first, map))
        })
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Split {
    pub job: String,
    /// Number of the round, from 1 on.
    pub round: u32,
    /// Whether all rounds are answered.
    pub ready: bool,
    /// Parts of the round, which are numbered from 0 on.
    pub parts: u32,
    /// The maps of the round.
    pub maps: Vec<PlannedMapSummary>,
    /// Parts without a whole answer, if `split` cannot go on without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
}

/// A map of a round, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedMapSummary {
    pub map: &'static str,
    pub first_part: u32,
    pub parts: u32,
    /// Items of all parts.
    pub items: usize,
    /// Bytes that all parts read.
    pub bytes: u64,
    /// Predicted seconds of one core, for all parts.
    pub core_seconds: f64,
}

impl Split {
    pub(super) fn new(job: &str, number: u32, round: &Round) -> Self {
        let maps = round.numbered_maps();
        let maps = maps.map(|(first_part, map)| PlannedMapSummary {
            map: map.map.label(),
            first_part,
            parts: map.parts.len() as u32,
            items: map.parts.iter().map(Vec::len).sum(),
            bytes: map.bytes,
            core_seconds: map.seconds,
        });
        Self {
            job: job.to_owned(),
            round: number,
            ready: round.is_last(),
            parts: round.parts(),
            maps: maps.collect(),
            missing: Vec::new(),
        }
    }
}
