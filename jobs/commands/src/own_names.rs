//! What messages call the copies of standard input and pipes, which are gone when they are read.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

/// The path of each copy; the name of what was copied: standard input, or the path of a pipe; and its hint.
static COPIES: RwLock<Vec<(String, String, &str)>> = RwLock::new(Vec::new());

/// Adds the `copy` of what is called `name`. The `hint` may help when it is wrong as a whole.
pub fn add(copy: String, name: String, hint: &'static str) {
    let mut copies = COPIES.write().unwrap_or_else(PoisonError::into_inner);
    copies.push((copy, name, hint));
}

/// The hint for the copy that a message says to be wrong as a whole; empty for other messages.
pub fn hint(message: &str) -> &'static str {
    let copies = COPIES.read().unwrap_or_else(PoisonError::into_inner);
    let is_wrong = |copy: &str| {
        let rest = message.strip_prefix(copy);
        rest.is_some_and(|rest| rest.starts_with(": "))
    };
    let wrong = copies.iter().find(|(copy, _, _)| is_wrong(copy));
    wrong.map_or("", |(_, _, hint)| *hint)
}

/// The message, with the own names of what was copied.
pub fn by_own_names(message: &str) -> Cow<'_, str> {
    let copies = COPIES.read().unwrap_or_else(PoisonError::into_inner);
    let message = Cow::Borrowed(message);
    copies.iter().fold(message, |message, (copy, name, _)| {
        if message.contains(copy) {
            message.replace(copy, name).into()
        } else {
            message
        }
    })
}
