//! Typed 32-bit indices that the whole crate shares.

/// Declares a 32-bit index type.
macro_rules! index_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize,
        )]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// Returns the id with this number.
            #[must_use]
            pub const fn new(index: u32) -> Self {
                Self(index)
            }

            /// Returns the id for position `index`, or `None` if it does not fit in 32 bits.
            #[must_use]
            pub fn from_index(index: usize) -> Option<Self> {
                u32::try_from(index).ok().map(Self)
            }

            /// Returns the number of this id.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns this id as a position in a table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// A token of a [`crate::vocab::Vocabulary`]: a position in a row of logits.
    TokenId
}
index_type! {
    /// A hash-consed expression of an [`crate::ir::Arena`].
    ExprId
}
index_type! {
    /// A rule (non-terminal) of an [`crate::ir::Grammar`].
    RuleId
}
index_type! {
    /// A lazily expanded member of a rule family, numbered by its [`crate::ir::Expander`].
    FamilyId
}
index_type! {
    /// A state of the byte automaton.
    StateId
}
