//! Unicode properties by the names that ECMA-262 gives them (tables 66 to 69), with the data of
//! `regex-syntax`.

use regex_syntax::hir::{Class, HirKind};

use crate::ir::chars::CharSet;

/// The binary properties of ECMA-262 table 67: long name and, where there is one, short name.
const BINARY: &[&str] = &[
    "ASCII",
    "ASCII_Hex_Digit",
    "AHex",
    "Alphabetic",
    "Alpha",
    "Any",
    "Assigned",
    "Bidi_Control",
    "Bidi_C",
    "Bidi_Mirrored",
    "Bidi_M",
    "Case_Ignorable",
    "CI",
    "Cased",
    "Changes_When_Casefolded",
    "CWCF",
    "Changes_When_Casemapped",
    "CWCM",
    "Changes_When_Lowercased",
    "CWL",
    "Changes_When_NFKC_Casefolded",
    "CWKCF",
    "Changes_When_Titlecased",
    "CWT",
    "Changes_When_Uppercased",
    "CWU",
    "Dash",
    "Default_Ignorable_Code_Point",
    "DI",
    "Deprecated",
    "Dep",
    "Diacritic",
    "Dia",
    "Emoji",
    "Emoji_Component",
    "EComp",
    "Emoji_Modifier",
    "EMod",
    "Emoji_Modifier_Base",
    "EBase",
    "Emoji_Presentation",
    "EPres",
    "Extended_Pictographic",
    "ExtPict",
    "Extender",
    "Ext",
    "Grapheme_Base",
    "Gr_Base",
    "Grapheme_Extend",
    "Gr_Ext",
    "Hex_Digit",
    "Hex",
    "IDS_Binary_Operator",
    "IDSB",
    "IDS_Trinary_Operator",
    "IDST",
    "ID_Continue",
    "IDC",
    "ID_Start",
    "IDS",
    "Ideographic",
    "Ideo",
    "Join_Control",
    "Join_C",
    "Logical_Order_Exception",
    "LOE",
    "Lowercase",
    "Lower",
    "Math",
    "Noncharacter_Code_Point",
    "NChar",
    "Pattern_Syntax",
    "Pat_Syn",
    "Pattern_White_Space",
    "Pat_WS",
    "Quotation_Mark",
    "QMark",
    "Radical",
    "Regional_Indicator",
    "RI",
    "Sentence_Terminal",
    "STerm",
    "Soft_Dotted",
    "SD",
    "Terminal_Punctuation",
    "Term",
    "Unified_Ideograph",
    "UIdeo",
    "Uppercase",
    "Upper",
    "Variation_Selector",
    "VS",
    "White_Space",
    "space",
    "XID_Continue",
    "XIDC",
    "XID_Start",
    "XIDS",
];

/// Returns the characters of `\p{text}`, or `None` if there is no such property.
pub(super) fn property(text: &str) -> Option<CharSet> {
    let word = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match text.split_once('=') {
        Some((name, value)) if word(value) => match name {
            "General_Category" | "gc" => class(&format!("gc={value}")),
            "Script" | "sc" => class(&format!("sc={value}")),
            "Script_Extensions" | "scx" => class(&format!("scx={value}")),
            _ => None,
        },
        None if word(text) => {
            if BINARY.iter().any(|name| name.eq_ignore_ascii_case(text)) {
                return class(text);
            }
            class(&format!("gc={text}"))
        }
        _ => None,
    }
}

fn class(query: &str) -> Option<CharSet> {
    match regex_syntax::parse(&format!(r"\p{{{query}}}")).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(set)) => Some(set),
        // A class of one character.
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(crate::ir::chars::char_set(&[(c, c)]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary_property_is_known_or_known_to_be_missing() {
        let missing: Vec<_> = BINARY.iter().filter(|name| property(name).is_none()).collect();
        // `regex-syntax` has no data for these.
        assert_eq!(missing, [&"Changes_When_NFKC_Casefolded", &"CWKCF"]);
    }

    #[test]
    fn scripts_need_their_property_name() {
        assert!(property("Script=Greek").is_some());
        assert!(property("scx=Grek").is_some());
        assert!(property("Greek").is_none());
        assert!(property("Script=Nowhere").is_none());
        assert!(property("Block=Latin").is_none());
        assert!(property("").is_none());
    }

    #[test]
    fn general_categories_stand_alone_or_by_name() {
        assert_eq!(property("Lu"), property("gc=Uppercase_Letter"));
        assert_eq!(property("digit"), property("Nd"));
        assert_ne!(property("L"), property("Lu"));
    }

    #[test]
    fn space_is_the_binary_property_and_not_a_category() {
        assert!(property("space").unwrap().iter().any(|r| r.start() == '\t'));
    }
}
