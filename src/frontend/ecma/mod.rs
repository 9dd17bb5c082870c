//! ECMA-262 patterns (JSON Schema `pattern`) to expressions.
