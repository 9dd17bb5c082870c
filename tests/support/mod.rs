//! What the tests and the fuzz targets share.

pub(crate) mod differential;
pub(crate) mod gbnf;
pub(crate) mod instances;
pub(crate) mod pools;
pub(crate) mod properties;
pub(crate) mod random;
pub(crate) mod reference;
pub(crate) mod schemas;
pub(crate) mod shrink;
pub(crate) mod writing;
