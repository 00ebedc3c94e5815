//! A tag of this machine and its current boot, for names of temporary files: whoever finds such a name can tell whether
//! the process that made it may still be alive.
//!
//! A tag is `{host}-{boot}`, eight hexadecimal digits each. `host` is a digest of the machine's id and its host name:
//! containers of one image may share the id, but have different host names. `boot` is a digest of the kernel's boot id,
//! which is the same in all containers of a machine.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::digest::hex;

/// Hexadecimal digits of each half of a tag.
const DIGITS: usize = 8;
/// The boot half of a tag if the kernel has no boot id.
const UNKNOWN_BOOT: &str = "00000000";

static OURS: LazyLock<String> = LazyLock::new(|| {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    let host = format!(
        "{}\n{}",
        read("/etc/machine-id"),
        read("/proc/sys/kernel/hostname")
    );
    let boot = read("/proc/sys/kernel/random/boot_id");
    make_tag(&host, &boot)
});

/// Where a tagged name was made, seen from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// On this machine since it booted: the process may be alive.
    ThisBoot,
    /// On this machine before it booted: the process is dead.
    EarlierBoot,
    /// On another machine: nothing is known of the process.
    OtherHost,
}

/// The tag of this machine and its current boot.
pub fn tag() -> &'static str {
    &OURS
}

/// The origin of `name`; `None` unless it begins with a tag and a hyphen.
pub fn origin(name: &str) -> Option<Origin> {
    compare_tags(tag(), name)
}

fn make_tag(host: &str, boot: &str) -> String {
    let boot = if boot.is_empty() {
        UNKNOWN_BOOT.to_owned()
    } else {
        short_digest(boot)
    };
    format!("{}-{boot}", short_digest(host))
}

/// The first [`DIGITS`] hexadecimal digits of the SHA-256 of `text`.
fn short_digest(text: &str) -> String {
    let mut digits = hex(&Sha256::digest(text));
    digits.truncate(DIGITS);
    digits
}

/// The origin of `name`, seen from the machine and boot whose tag is `ours`.
fn compare_tags(ours: &str, name: &str) -> Option<Origin> {
    let mut parts = name.splitn(3, '-');
    let (host, boot, _) = (parts.next()?, parts.next()?, parts.next()?);
    let is_half = |text: &str| {
        text.len() == DIGITS
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !is_half(host) || !is_half(boot) {
        return None;
    }
    let (our_host, our_boot) = ours.split_once('-')?;
    let are_known = boot != UNKNOWN_BOOT && our_boot != UNKNOWN_BOOT;
    Some(match (host == our_host, boot == our_boot) {
        // Another container of this machine: another host name, the same kernel.
        (_, true) if are_known => Origin::ThisBoot,
        (true, false) if are_known => Origin::EarlierBoot,
        (true, _) => Origin::ThisBoot,
        (false, _) => Origin::OtherHost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_knows_its_own_tag() {
        assert_eq!(tag().len(), 2 * DIGITS + 1);
        assert_eq!(tag(), tag());
        let name = format!("{}-a1B2c3", tag());
        assert_eq!(origin(&name), Some(Origin::ThisBoot));
    }

    #[test]
    fn a_name_tells_its_host_and_boot() {
        let ours = make_tag("host", "boot");
        let seen = |host: &str, boot: &str| {
            let name = format!("{}-abcdef", make_tag(host, boot));
            compare_tags(&ours, &name).unwrap()
        };
        assert_eq!(seen("host", "boot"), Origin::ThisBoot);
        assert_eq!(seen("host", "boot before"), Origin::EarlierBoot);
        assert_eq!(seen("other", "other boot"), Origin::OtherHost);
        // Another container, the same kernel: locks work between them.
        assert_eq!(seen("other", "boot"), Origin::ThisBoot);
        // Without a boot id, no process is known to be dead.
        assert_eq!(seen("host", ""), Origin::ThisBoot);
        assert_eq!(seen("other", ""), Origin::OtherHost);
        let ours = make_tag("host", "");
        let here = format!("{ours}-abcdef");
        assert_eq!(compare_tags(&ours, &here), Some(Origin::ThisBoot));
        let there = format!("{}-abcdef", make_tag("other", ""));
        assert_eq!(compare_tags(&ours, &there), Some(Origin::OtherHost));
    }

    #[test]
    fn names_without_a_tag_have_no_origin() {
        for name in [
            "",
            "abcdef",
            "other",
            "01234567-89abcdef",
            "01234567-89abcde-abcdef",
            "0123456g-89abcdef-abcdef",
            "01234567-89ABCDEF-abcdef",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(origin(name), None, "{name}");
        }
    }
}
