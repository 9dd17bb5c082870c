//! The engine inside other people's libraries, one feature each. Foreign types stop here.

#[cfg(feature = "candle")]
pub mod candle;
