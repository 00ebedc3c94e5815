//! What messages call the copies of standard input and pipes, which are gone when they are read.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

/// The path of each copy, and the name of what was copied: standard input, or the path of a pipe.
static COPIES: RwLock<Vec<(String, String)>> = RwLock::new(Vec::new());

/// Adds the `copy` of what is called `name`.
pub fn add(copy: String, name: String) {
    let mut copies = COPIES.write().unwrap_or_else(PoisonError::into_inner);
    copies.push((copy, name));
}

/// The message, with the own names of what was copied.
pub fn by_own_names(message: &str) -> Cow<'_, str> {
    let copies = COPIES.read().unwrap_or_else(PoisonError::into_inner);
    let message = Cow::Borrowed(message);
    copies.iter().fold(message, |message, (copy, name)| {
        if message.contains(copy) {
            message.replace(copy, name).into()
        } else {
            message
        }
    })
}
