//! Templates: what the pages of a source share, such as navigation and footers, and what is left of a page without it.
//!
//! Two products of one shop share most of their words, and are not the same page; two mirrors share the article, and not the frame
//! around it. So a text is compared without the template of its source.
//!
//! ```text
//! text ─▶ passages ─▶ pages of a source ─▶ choose ─▶ templates ─▶ contents
//!                                           ▲  │
//!                                           └──┴─ memory, from night to night
//! ```
//!
//! - [`each_passage`] cuts a text into lines and sentences, each with a key.
//! - A [`Page`] is the set of the keys of a text.
//! - [`choose()`] says which passages of a source's pages are its template, and what they add to what is known of it: [`Learnt`].
//! - [`Memory`] is what is remembered of all sources, as a file of bounded size. It has keys, and no text.
//! - [`Contents`] takes [`Templates`] out of texts.

pub mod choose;
mod codec;
pub mod learnt;
pub mod memory;
mod numbers;
pub mod page;
pub mod passages;
pub mod rule;
pub mod source;
pub mod templates;

pub use choose::{Chosen, MOST_PAGES, choose};
pub use codec::Damaged;
pub use learnt::{Learnt, LearntPassage, Role, Seen};
pub use memory::{Memory, Remembered};
pub use page::Page;
pub use passages::{Passage, each_passage};
pub use rule::{OF_MANY_SOURCES, OF_SOURCE, Rule};
pub use source::{domain, host, source_of_site, source_of_url, source_said};
pub use templates::{Contents, Template, Templates};
