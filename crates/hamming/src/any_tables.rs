//! [`AnyTables`], the enum over the mechanisms' tables: the one place that dispatches on the mechanism.

use crate::cost::Cost;
use crate::design::{Design, Mechanism};
use crate::halves::Halves;
use crate::isa::Kernel;
use crate::limits::Limits;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, MechanismTables, Times};
use crate::permuted::Permuted;
use crate::related::Related;
use crate::variants::Variants;

/// The tables of a design over a part of the batch, built by any of the mechanisms.
#[derive(Debug)]
pub(crate) enum AnyTables {
    Permuted(Permuted),
    Halves(Box<Halves>),
    Variants(Variants),
}

/// The probe buffers of every mechanism; a probe uses only those of its tables' mechanism.
#[derive(Debug, Default)]
pub(crate) struct AnyBuffers {
    permuted: <Permuted as MechanismTables>::Buffers,
    halves: <Halves as MechanismTables>::Buffers,
    variants: <Variants as MechanismTables>::Buffers,
}

/// Calls `$method` on the tables of `$any`, whatever their mechanism.
macro_rules! dispatch {
    ($any:expr, $method:ident) => {
        match $any {
            AnyTables::Permuted(tables) => tables.$method(),
            AnyTables::Halves(tables) => tables.$method(),
            AnyTables::Variants(tables) => tables.$method(),
        }
    };
}

impl AnyTables {
    /// See [`MechanismTables::predict`].
    pub(crate) fn predict(design: &Design, entries: usize, limits: &Limits) -> Cost {
        match design.mechanism() {
            Mechanism::Permuted => Permuted::predict(design, entries, limits),
            Mechanism::Halves => Halves::predict(design, entries, limits),
            Mechanism::Variants => Variants::predict(design, entries, limits),
        }
    }

    /// See [`MechanismTables::related_ns`].
    pub(crate) fn related_ns(design: &Design, related: &Related) -> f64 {
        match design.mechanism() {
            Mechanism::Permuted => Permuted::related_ns(design, related),
            Mechanism::Halves => Halves::related_ns(design, related),
            Mechanism::Variants => Variants::related_ns(design, related),
        }
    }

    /// Describes in one line the layout of the tables of `design` over `entries` entries.
    pub(crate) fn describe(design: &Design, entries: usize) -> String {
        match design.mechanism() {
            Mechanism::Permuted => Permuted::describe(design, entries),
            Mechanism::Halves => Halves::describe(design, entries),
            Mechanism::Variants => Variants::describe(design, entries),
        }
    }

    /// Builds the tables of `values`, distinct and ascending, on up to `threads` threads.
    pub(crate) fn build(values: &[u64], design: &Design, threads: usize) -> Self {
        match design.mechanism() {
            Mechanism::Permuted => Self::Permuted(Permuted::build(values, design, threads)),
            Mechanism::Halves => Self::Halves(Box::new(Halves::build(values, design, threads))),
            Mechanism::Variants => Self::Variants(Variants::build(values, design, threads)),
        }
    }

    /// See [`MechanismTables::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        dispatch!(self, bytes)
    }

    /// See [`MechanismTables::chunk_len`].
    pub(crate) fn chunk_len(&self) -> usize {
        dispatch!(self, chunk_len)
    }

    /// Whether several tables may report one pair. Those mechanisms also leave out each value's match with itself, which
    /// [`crate::Tables::probe_self`] adds; `permuted`, of whose tables one alone reports a pair, does neither.
    pub(crate) fn repeat_pairs(&self) -> bool {
        !matches!(self, Self::Permuted(_))
    }

    /// See [`MechanismTables::probe`].
    pub(crate) fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        buffers: &mut AnyBuffers,
        matches: &mut Matches<'_>,
    ) -> Times {
        match self {
            Self::Permuted(tables) => {
                tables.probe(kernel, part, chunk, &mut buffers.permuted, matches)
            }
            Self::Halves(tables) => tables.probe(kernel, part, chunk, &mut buffers.halves, matches),
            Self::Variants(tables) => {
                tables.probe(kernel, part, chunk, &mut buffers.variants, matches)
            }
        }
    }
}
