//! Regular expressions in the dialect of `regex-syntax` to grammar.
