//! The properties of the tests, compiled once for all targets.

#[path = "../../tests/support/mod.rs"]
mod support;

/// Checks the property `name` on an input.
///
/// # Panics
///
/// If it does not hold.
pub fn check(name: &str, data: &[u8]) {
    support::properties::check(name, data);
}
