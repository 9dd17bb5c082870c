//! White space: the options in, the expressions that stand between the parts of a document out.

use super::options::Whitespace;
use crate::ids::ExprId;
use crate::ir::{Arena, ByteSet};

/// The white space inside one array or object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spaces {
    /// Between the brackets of an empty one.
    pub(super) empty: ExprId,
    /// After the opening bracket.
    pub(super) open: ExprId,
    /// After a comma.
    pub(super) comma: ExprId,
    /// After a colon.
    pub(super) colon: ExprId,
    /// Before the closing bracket.
    pub(super) close: ExprId,
}

impl Spaces {
    /// Returns the white space of an array or object that `level` others are around.
    pub(super) fn new(arena: &mut Arena, whitespace: Whitespace, level: u32) -> Self {
        let none = Arena::EPSILON;
        match whitespace {
            Whitespace::Compact => {
                Self { empty: none, open: none, comma: none, colon: none, close: none }
            }
            Whitespace::Spaced => {
                let space = arena.byte(b' ');
                Self { empty: none, open: none, comma: space, colon: space, close: none }
            }
            Whitespace::Flexible => {
                let space = arena.byte(b' ');
                let blank = arena.bytes(ByteSet::of(b" \t"));
                let indent = arena.repeat(blank, 0, Whitespace::MAX_INDENT);
                let newline = arena.byte(b'\n');
                let line = arena.concat2(newline, indent);
                let gap = arena.alt(&[none, space, line]);
                Self { empty: gap, open: gap, comma: gap, colon: gap, close: gap }
            }
            Whitespace::Pretty(width) => {
                let mut line = |level: u32| {
                    let newline = arena.byte(b'\n');
                    let blank = arena.byte(b' ');
                    let width = level.saturating_mul(u32::from(width));
                    let indent = arena.repeat(blank, width, width);
                    arena.concat2(newline, indent)
                };
                let (inside, close) = (line(level.saturating_add(1)), line(level));
                let colon = arena.byte(b' ');
                Self { empty: none, open: inside, comma: inside, colon, close }
            }
        }
    }

    /// Returns the ways in which an array may end after an element that is not delimited by itself: the
    /// byte after it, and the rest with the bracket. The bytes are some of
    /// [`crate::ir::TERMINATORS`].
    pub(super) fn endings(
        arena: &mut Arena,
        whitespace: Whitespace,
        level: u32,
    ) -> Vec<(u8, ExprId)> {
        let bracket = arena.byte(b']');
        match whitespace {
            Whitespace::Compact | Whitespace::Spaced => vec![(b']', Arena::EPSILON)],
            Whitespace::Flexible => {
                let blank = arena.bytes(ByteSet::of(b" \t"));
                let indent = arena.repeat(blank, 0, Whitespace::MAX_INDENT);
                let line = arena.concat2(indent, bracket);
                vec![(b']', Arena::EPSILON), (b' ', bracket), (b'\n', line)]
            }
            Whitespace::Pretty(width) => {
                let blank = arena.byte(b' ');
                let width = level.saturating_mul(u32::from(width));
                let indent = arena.repeat(blank, width, width);
                vec![(b'\n', arena.concat2(indent, bracket))]
            }
        }
    }
}
