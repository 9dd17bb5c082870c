//! What the tests and the fuzz targets share.

pub(crate) mod gbnf;
pub(crate) mod properties;
pub(crate) mod random;
pub(crate) mod reference;
