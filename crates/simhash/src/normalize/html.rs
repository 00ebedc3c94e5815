//! The text of an HTML page: [`visible_text`]; without navigation and the like, [`main_text`]; and, as a library finds it,
//! `article_text`. Version 1.
//!
//! A page goes through these modules in order: `scan` cuts it into tags and text, `open` knows which elements are open,
//! `hidden` and `style` which of them are shown, and `blocks` walks over all that. `write` appends text with collapsed
//! white space. `text` keeps all of that; `main` keeps blocks of it, which `boilerplate` tells apart by their elements and
//! `classify` by their words and by the `containers` that they stand in. `page_tree` makes a tree of the visible elements,
//! in which `article` lets the library search.
//!
//! Every page is read in linear time, and what is open is bounded by [`open::MOST`], so no page is a danger to the
//! process. The library needs more than that for large trees; `page_tree` bounds them.
//!
//! The output decides fingerprints. A change that gives another text for any page needs another version, and the code
//! of this version stays for the archives that have it; see [`super::Markup::version`].

#[cfg(feature = "article")]
mod article;
mod blocks;
mod boilerplate;
mod classify;
mod containers;
mod elements;
mod entities;
mod hidden;
mod keywords;
mod main;
mod names;
mod open;
mod page_title;
#[cfg(feature = "article")]
mod page_tree;
mod raw_text;
#[cfg(test)]
mod reference;
mod scan;
mod style;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod write;

#[cfg(feature = "article")]
pub(super) use article::article_text;
pub(super) use main::main_text;
pub(super) use text::visible_text;
