//! The built-in vocabulary: nothing in, a [`Vocabulary`] out that can spell every text, so that
//! everything runs without a download.
//!
//! Ids 0 to 255 are the bytes; then come pieces that are made here from short lists: numbers, runs
//! of JSON punctuation and indentation, letter groups, words with and without a space before them,
//! characters of other scripts and parts of such characters; the last id is the end token. It is
//! meant for tests, for examples and for random data, not for a model. Built once, in about a
//! millisecond.

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use crate::ids::TokenId;
use crate::vocab::{Token, Vocabulary};

/// The name of the end token of the embedded vocabulary.
pub const END: &str = "<|end|>";

/// Punctuation that follows each other in JSON and code.
const PUNCTUATION: &str = r##"
{" "} "] [" ": :" ," ", [[ ]] {{ }} [{ }] {} [] () (" ") ]} }, ], ":" "," ":[ ":{ ":" ":- "},
"], "}] "}} "]} }]} }}} ]]] [[[ },{ ],[ },{" ],[" ":[" ":{" ":[{ ":[{" ":[] ":{} ":"" "","" {"" \"
\\ \n \t \r \/ \b \f \u \" \u00 \u20 \ud8 \udc \u0 :// .. ... -- --- == != <= >= => -> :: // /* */
&& || ++ += ** ## ?? !! ); (); {} }; .0 .5 0. 1. -1 e+ e- E+ E- %20 @ 's 't 're 've 'm 'll 'd
"##;

/// Words that occur as keys or values of JSON, which are added in quotes too.
const FIELDS: &str = "
id name type value key title text date time status code data list items number count total price
email phone address city country street state user role tags label kind size color level score
message error result query answer description url version amount currency first last age active
";

/// Common words.
const WORDS: &str = "
a an the and or but if then else when while as of at by for with about against between into through
during before after above below to from up down in out on off over under again further once here
there where why how all any both each few more most other some such no nor not only own same so
than too very can will just should now i you he she it we they me him her us them my your his its
our their this that these those am is are was were be been being have has had having do does did
doing would could may might must shall one two three four five six seven eight nine ten hundred
thousand million second third next new old good bad great small large big little long short high
low right left early late young public private free open close true false null none yes today year
month week day hour minute morning night people person man woman child family friend group company
work job school student teacher house home room door window town world water food money part place
thing point fact idea case way end begin start stop line page book story word letter question
problem reason change move turn run walk sit stand play read write speak talk say said tell told
ask call hear see look watch find found keep give gave take took make made get got put set let go
went come came know knew think thought feel want need use used try help show mean seem leave bring
hold live believe happen provide include continue learn lead understand follow create build grow
win lose pay meet send expect stay fall cut reach kill remain suggest raise pass sell require
report decide pull return explain hope develop carry break thank receive agree support hit produce
eat cover catch draw choose cause allow add spend string array object integer boolean function
const var class static void import export default async await undefined print self index length
input output file path model token vocabulary grammar schema example sample test field record table
row column January February March April May June July August September October November December
Monday Tuesday Wednesday Thursday Friday Saturday Sunday London Paris Berlin Tokyo Europe America
Asia Africa English French German Spanish Chinese Japanese Anna Maria John James David Peter Paul
Alice
";

/// Groups of letters that many words have.
const GROUPS: &str = "
th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me
de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot
il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai
sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ui fr oo ag
if ap gr od bo sp rd do uc bu ei ov by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba
ey ls va um pp ua up lu go ht ru ug ds lt pi rc rr eg au ck ew mu br bi pt ak pu rg ib tl ny ki rk
ys ob mm fu ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn nu af hu nn eo vo rv nf xp gn ing
ion tio ent ati for her ter hat tha ere ate his con res ver all ons nce men ith ted ers pro thi wit
are ess not ive was ect rea com eve per int est sta cti ica ist ear ain one our iti rat nte ant ble
ore par port able ally ment ness less ful ous ish ize ise age ship ward hood ism ity ery ory
";

/// Letters with marks, and other scripts: whole characters.
const CHARACTERS: &str = "
à á â ã ä å æ ç è é ê ë ì í î ï ñ ò ó ô õ ö ø œ ù ú û ü ý ÿ ß À Á Â Ä Å Ç È É Ê Ë Í Ñ Ó Ö Ø Ú Ü š ž
č ł ś ż ę ą ğ ı ő € £ ¥ § ° ± · × ÷ « » “ ” ‘ ’ – — … • → ← ↑ ↓ ≤ ≥ ≠ ≈ ∞ √ ½ ² ³ µ ™ © ® а б в г д
е ж з и й к л м н о п р с т у ф х ц ч ш щ ы ь э ю я А Б В Г Д К М Н О П Р С Т α β γ δ ε η θ κ λ μ ν
ο π ρ σ ς τ υ φ ω Α Δ Σ Ω א ב ה ו ל ם ש ا ب ت د ر س ع ل م ن ه و ي क र न म त 的 一 是 不 了 人 我 在 有 他 这 中
大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年 日 本 月 水 火 の に は を た が で て と し れ さ い う か な ま す ん ア イ ス ト ン ル ー 이
다 는 에 가 을 하 고 한 국 😀 😂 😊 😍 👍 🎉 🔥 ✅ ❌ 🚀 🌍 🐱
";

/// Starts and ends of characters that are no text alone, as byte-level vocabularies have them.
const PARTS: [&[u8]; 24] = [
    b"\xe2\x80",
    b"\xe2\x86",
    b"\xe2\x89",
    b"\xe3\x81",
    b"\xe3\x82",
    b"\xe3\x83",
    b"\xe4\xb8",
    b"\xe4\xba",
    b"\xe6\x97",
    b"\xe5\x9b",
    b"\xec\x9d",
    b"\xf0\x9f",
    b"\xf0\x9f\x98",
    b"\xf0\x9f\x91",
    b"\xf0\x9f\x9a",
    b"\x80\x99",
    b"\x80\x9d",
    b"\x9f\x98",
    b" \xc3",
    b" \xd0",
    b" \xe2\x80",
    b"\"\xe2\x80",
    b"\xa9\"",
    b"\xd0\xb0\xd0",
];

/// Spaces of the deepest indentation, alone and after a new line.
const DEEPEST: usize = 24;

impl Vocabulary {
    /// Returns the built-in vocabulary: all 256 bytes, some 3,600 pieces of text, and the end token
    /// [`END`].
    ///
    /// Its ids are the same in every run. See [`Vocabulary::encode_greedy`] for turning text into
    /// tokens.
    #[must_use]
    pub fn embedded() -> Arc<Self> {
        static EMBEDDED: OnceLock<Arc<Vocabulary>> = OnceLock::new();
        Arc::clone(EMBEDDED.get_or_init(|| Arc::new(build())))
    }
}

fn build() -> Vocabulary {
    let mut tokens = Tokens::default();
    for byte in 0..=255 {
        tokens.add([byte]);
    }
    numbers(&mut tokens);
    structure(&mut tokens);
    text(&mut tokens);
    for part in PARTS {
        tokens.add(part);
    }
    let mut tokens = tokens.list;
    let end = TokenId::from_index(tokens.len());
    tokens.push(Token::Special(END.into()));
    #[expect(clippy::expect_used, reason = "a constant; the tests build it")]
    Vocabulary::new(tokens, end).expect("the embedded vocabulary has an end token")
}

/// Texts in order of their first appearance.
#[derive(Default)]
struct Tokens {
    list: Vec<Token>,
    seen: HashSet<Box<[u8]>>,
}

impl Tokens {
    fn add(&mut self, text: impl AsRef<[u8]>) {
        let text: Box<[u8]> = text.as_ref().into();
        if self.seen.insert(text.clone()) {
            self.list.push(Token::Text(text));
        }
    }
}

/// Numbers of two and three digits.
fn numbers(tokens: &mut Tokens) {
    for width in 2..=3 {
        for number in 0..10_usize.pow(width) {
            tokens.add(format!("{number:0width$}", width = width as usize));
        }
    }
}

/// Punctuation, fields in quotes and indentation.
fn structure(tokens: &mut Tokens) {
    for run in PUNCTUATION.split_whitespace() {
        tokens.add(run);
        tokens.add(format!("{run} "));
    }
    for literal in ["true", "false", "null"] {
        for (before, after) in [(":", ""), (": ", ""), ("", ","), ("", "}"), ("", "]"), ("[", "")] {
            tokens.add(format!("{before}{literal}{after}"));
        }
    }
    for field in FIELDS.split_whitespace() {
        for (before, after) in
            [("\"", "\""), ("\"", "\":"), ("\"", "\": "), ("\"", ""), ("", "\":")]
        {
            tokens.add(format!("{before}{field}{after}"));
        }
    }
    for depth in 1..=DEEPEST {
        let spaces = " ".repeat(depth);
        tokens.add(&spaces);
        for before in ["\n", ",\n", "{\n", "[\n", "\r\n", "\n\n"] {
            tokens.add(format!("{before}{spaces}"));
            tokens.add(before);
        }
    }
    for depth in 1..=8 {
        tokens.add("\t".repeat(depth));
        tokens.add("\n".to_owned() + &"\t".repeat(depth));
        tokens.add("\n".repeat(depth));
    }
}

/// Words, letter groups and characters.
fn text(tokens: &mut Tokens) {
    for word in WORDS.split_whitespace().chain(FIELDS.split_whitespace()) {
        tokens.add(word);
        tokens.add(format!(" {word}"));
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            let upper: String = first.to_uppercase().chain(letters).collect();
            tokens.add(format!(" {upper}"));
        }
    }
    for group in GROUPS.split_whitespace() {
        tokens.add(group);
    }
    for letter in 'a'..='z' {
        tokens.add(format!(" {letter}"));
        tokens.add(format!(" {}", letter.to_ascii_uppercase()));
        tokens.add(format!("\"{letter}"));
    }
    for character in CHARACTERS.split_whitespace() {
        tokens.add(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_token_and_the_end_token_comes_last() {
        let vocabulary = Vocabulary::embedded();
        for byte in 0..=255_u8 {
            assert_eq!(vocabulary.bytes(TokenId::new(byte.into())), [byte]);
        }
        let last = TokenId::from_index(vocabulary.len() - 1).unwrap();
        assert_eq!(vocabulary.end_tokens(), [last]);
        assert_eq!(vocabulary.specials(), [(last, END.into())]);
        assert!((2_000..4_096).contains(&vocabulary.len()), "{}", vocabulary.len());
    }

    #[test]
    fn no_two_tokens_have_the_same_bytes_and_some_are_parts_of_characters() {
        let vocabulary = Vocabulary::embedded();
        let texts: HashSet<_> = vocabulary.ids().map(|id| vocabulary.bytes(id)).collect();
        assert_eq!(texts.len(), vocabulary.len());
        let parts = texts.iter().filter(|bytes| std::str::from_utf8(bytes).is_err()).count();
        assert_eq!(parts, 128 + PARTS.len());
    }

    #[test]
    fn ids_stay_the_same() {
        // Artifacts and recorded seeds name these ids: change them only with a new version.
        let fingerprint = Vocabulary::embedded().fingerprint().to_string();
        assert_eq!(fingerprint, "a0d74db561338b2a0f530af06b3c972c");
    }

    #[test]
    fn any_text_can_be_spelled() {
        let vocabulary = Vocabulary::embedded();
        for text in ["", "{\"name\": \"Zoë\", \"n\": [1, 22.5e-7]}", "日本語 👩‍💻\u{0}\u{7f}\r\n"]
        {
            let tokens = vocabulary.encode_greedy(text.as_bytes()).unwrap();
            assert_eq!(vocabulary.decode(&tokens), text.as_bytes());
        }
        let field = vocabulary.encode_greedy(b"\"name\": ").unwrap();
        assert_eq!(field.len(), 1);
    }
}
