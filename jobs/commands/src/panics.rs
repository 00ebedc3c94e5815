//! A panic ends a command with an error as every other: one line, the exit code of a defect, and what follows an error, such as metrics.

use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::EngineError;

use crate::exit::Failure;

/// Where the last panic was, on whatever thread.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Whether panics are logged as well: those of a server's requests end no command.
static ARE_LOGGED: AtomicBool = AtomicBool::new(false);

/// Logs all panics from now on.
pub fn log_all() {
    ARE_LOGGED.store(true, Ordering::Relaxed);
}

/// Keeps where a panic was for the error that it becomes. The library of Parquet panics on some forged files; these panics become errors,
/// and nothing else is to be said of them.
pub fn stay_quiet() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let place = panic.location().map(ToString::to_string);
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
        if ARE_LOGGED.load(Ordering::Relaxed) {
            tracing::error!("{panic}");
        }
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            tracing::debug!("{panic}\n{}", Backtrace::force_capture());
        }
    }));
}

/// Does the work; a panic becomes an error.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
        let place = place.map_or_else(String::new, |place| format!(", at {place}"));
        let message = format!(
            "internal error: {}{place}; please report it",
            message(&*panic)
        );
        Err(EngineError::Internal(message).into())
    })
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    let formatted = || panic.downcast_ref::<String>().map(String::as_str);
    literal.or_else(formatted).unwrap_or("a panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let number = 7;
        for (work, said) in [
            (caught::<()>(|| panic!("one")), "internal error: one"),
            (
                caught(|| panic!("number {number}")),
                "internal error: number 7",
            ),
        ] {
            let failure = work.unwrap_err();
            assert_eq!(failure.code(), 70);
            assert!(failure.to_string().starts_with(said), "{failure}");
        }
        assert_eq!(caught(|| Ok(3)).unwrap(), 3);
    }
}
