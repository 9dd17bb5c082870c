//! Rank files in, tokens out: tiktoken's (`base64 rank` on each line) and Mistral's `tekken.json`.
//! Bytes are exact in both; special tokens stand apart.
//!
//! The table of ids is never longer than the file, plus the ids that the caller names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::Token;
use crate::vocab::split;

/// Tokens by rank, and how text is split before it is merged.
#[derive(Debug)]
pub(crate) struct RankFile {
    /// Position = id; holes are unused.
    pub(crate) tokens: Vec<Token>,
    /// A regular expression that [`split::Splitter`] takes.
    pub(crate) pattern: String,
}

/// Numbers of ranks of published tiktoken files, and the pattern that goes with each. The files do
/// not name it.
const KNOWN_PATTERNS: [(usize, &str); 7] = [
    (50_256, split::GPT_2),    // gpt2, r50k_base
    (50_257, split::GPT_2),    // the same with its special token
    (50_280, split::GPT_2),    // p50k_base
    (100_256, split::LLAMA_3), // cl100k_base
    (128_000, split::LLAMA_3), // Llama 3
    (151_643, split::QWEN_2),  // Qwen
    (199_998, split::O200K),   // o200k_base
];

/// Returns whether the first line has the form of a tiktoken file.
pub(crate) fn is_tiktoken(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b'\n').next().is_some_and(|line| parse_line(line).is_some())
}

/// Returns the tokens of a tiktoken file, with the special tokens that the caller names.
///
/// # Errors
///
/// [`ErrorKind::Vocabulary`] naming the line that is malformed or repeats a rank, or the special
/// token whose id is taken or out of bounds.
pub(crate) fn parse_tiktoken(
    bytes: &[u8],
    specials: &[(Box<str>, TokenId)],
) -> Result<RankFile, Error> {
    let mut tokens = Vec::new();
    let mut count = 0;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let refuse = |what: &str| malformed(&format!("line {} {what}", index + 1));
        let (token, rank) =
            parse_line(line).ok_or_else(|| refuse("is not a token in base64 and its rank"))?;
        count += 1;
        place(&mut tokens, rank, bytes.len(), Token::Text(token.into()))
            .map_err(|what| refuse(&format!("has the rank {rank}, {what}")))?;
    }
    // An id past the last rank is the caller's word, not the file's; it still has to be near.
    let bound = tokens.len().max(bytes.len());
    for (name, id) in specials {
        place(&mut tokens, id.index(), bound, Token::Special(name.clone())).map_err(|what| {
            malformed(&format!("the special token `{name}` has the id {}, {what}", id.get()))
        })?;
    }
    let known = KNOWN_PATTERNS.iter().find(|(ranks, _)| *ranks == count);
    let pattern = known.map_or(split::LLAMA_3, |(_, pattern)| pattern).to_owned();
    Ok(RankFile { tokens, pattern })
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, usize)> {
    let line = std::str::from_utf8(line.trim_ascii()).ok()?;
    let (token, rank) = line.split_once(' ')?;
    Some((STANDARD.decode(token).ok()?, rank.parse().ok()?))
}

/// Puts a token at `id`, below `bound` and not twice.
fn place(
    tokens: &mut Vec<Token>,
    id: usize,
    bound: usize,
    token: Token,
) -> Result<(), &'static str> {
    if id >= bound {
        return Err("which is larger than the whole file is long");
    }
    if id >= tokens.len() {
        tokens.resize(id + 1, Token::Unused);
    }
    if tokens[id] != Token::Unused {
        return Err("which is taken");
    }
    tokens[id] = token;
    Ok(())
}

#[derive(serde::Deserialize)]
struct TekkenFile {
    config: TekkenConfig,
    vocab: Vec<TekkenToken>,
    #[serde(default)]
    special_tokens: Option<Vec<TekkenSpecial>>,
}

#[derive(serde::Deserialize)]
struct TekkenConfig {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: usize,
}

#[derive(serde::Deserialize)]
struct TekkenToken {
    rank: usize,
    token_bytes: String,
}

#[derive(serde::Deserialize)]
struct TekkenSpecial {
    rank: usize,
    token_str: String,
}

/// The special tokens that every tekken file has had from the start; files of the first version do
/// not list them.
const TEKKEN_SPECIALS: [&str; 3] = ["<unk>", "<s>", "</s>"];

/// Returns the tokens of a `tekken.json`: special ids first, then the ranks, as far as the
/// vocabulary goes that the model was trained with (`default_vocab_size`).
///
/// # Errors
///
/// [`ErrorKind::Vocabulary`] if the text is not JSON of this shape, a token is no base64, or ids
/// overlap.
pub(crate) fn parse_tekken(bytes: &[u8]) -> Result<RankFile, Error> {
    let file: TekkenFile = serde_json::from_slice(bytes).map_err(|error| {
        let text = format!("JSON, but neither a tokenizer.json nor a tekken.json: {error}");
        Error::new(ErrorKind::Vocabulary, text)
    })?;
    let config = &file.config;
    if config.default_vocab_size > bytes.len() || config.default_num_special_tokens > bytes.len() {
        return Err(malformed("its `config` announces more tokens than the file is long"));
    }
    let mut tokens = Vec::new();
    let specials = file.special_tokens.unwrap_or_else(|| {
        let special = |(rank, name): (usize, &str)| TekkenSpecial { rank, token_str: name.into() };
        TEKKEN_SPECIALS.into_iter().enumerate().map(special).collect()
    });
    for TekkenSpecial { rank, token_str } in specials {
        let bound = config.default_num_special_tokens;
        place(&mut tokens, rank, bound, Token::Special(token_str.into())).map_err(|_| {
            malformed(&format!("special token {rank} is taken or not below {bound}"))
        })?;
    }
    for rank in tokens.len()..config.default_num_special_tokens {
        tokens.push(Token::Special(format!("<SPECIAL_{rank}>").into()));
    }
    for TekkenToken { rank, token_bytes } in file.vocab {
        let id = rank.saturating_add(config.default_num_special_tokens);
        if id >= config.default_vocab_size {
            continue;
        }
        let token = STANDARD
            .decode(token_bytes)
            .map_err(|_| malformed(&format!("the token of rank {rank} is not base64")))?;
        place(&mut tokens, id, config.default_vocab_size, Token::Text(token.into()))
            .map_err(|what| malformed(&format!("a token has the rank {rank}, {what}")))?;
    }
    Ok(RankFile { tokens, pattern: file.config.pattern })
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Vocabulary, format!("the rank file cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(token: &[u8], rank: usize) -> String {
        format!("{} {rank}\n", STANDARD.encode(token))
    }

    #[test]
    fn ranks_are_ids_and_holes_are_unused() {
        let file = line(b"a", 0) + "\n" + &line(b"\xc3", 3) + &line(b" the", 1);
        assert!(is_tiktoken(file.as_bytes()));
        let specials = [("<|endoftext|>".into(), TokenId::new(5))];
        let tokens = parse_tiktoken(file.as_bytes(), &specials).unwrap().tokens;
        assert_eq!(
            tokens,
            [
                Token::Text(b"a".as_slice().into()),
                Token::Text(b" the".as_slice().into()),
                Token::Unused,
                Token::Text(b"\xc3".as_slice().into()),
                Token::Unused,
                Token::Special("<|endoftext|>".into()),
            ]
        );
    }

    #[test]
    fn broken_rank_files_name_the_line() {
        let twice = line(b"a", 0) + &line(b"b", 0);
        let far = line(b"a", 0) + &line(b"b", 4_000_000_000);
        let noise = line(b"a", 0) + "YQ== x\n";
        for file in [&twice, &far, &noise] {
            let error = parse_tiktoken(file.as_bytes(), &[]).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Vocabulary);
            assert!(error.message().contains("line 2"), "{error}");
        }
        let taken = [("<x>".into(), TokenId::new(0))];
        assert!(parse_tiktoken(line(b"a", 0).as_bytes(), &taken).is_err());
        for text in ["", "hello world", "YQ==", "{}"] {
            assert!(!is_tiktoken(text.as_bytes()), "{text}");
        }
    }

    fn tekken(specials: &str) -> String {
        let token = |rank: usize, bytes: &[u8]| {
            format!(
                r#"{{"rank":{rank},"token_bytes":"{}","token_str":null}}"#,
                STANDARD.encode(bytes)
            )
        };
        format!(
            r#"{{"config":{{"pattern":"\\s+(?!\\S)|\\s+","num_vocab_tokens":3,"default_vocab_size":6,"default_num_special_tokens":4,"version":"v3"}},"vocab":[{},{},{}]{specials}}}"#,
            token(0, b"\x00"),
            token(1, b"ab"),
            token(2, b"past the vocabulary")
        )
    }

    #[test]
    fn tekken_puts_special_ids_first_and_cuts_at_its_size() {
        let special = |name: &str| Token::Special(name.into());
        let text = |bytes: &[u8]| Token::Text(bytes.into());
        assert_eq!(
            parse_tekken(tekken("").as_bytes()).unwrap().tokens,
            [
                special("<unk>"),
                special("<s>"),
                special("</s>"),
                special("<SPECIAL_3>"),
                text(b"\x00"),
                text(b"ab"),
            ]
        );
        let named = tekken(r#","special_tokens":[{"rank":0,"token_str":"<e>","is_control":true}]"#);
        let tokens = parse_tekken(named.as_bytes()).unwrap().tokens;
        assert_eq!(tokens[0], special("<e>"));
        assert_eq!(tokens.len(), 6);
        let far = tekken(r#","special_tokens":[{"rank":4,"token_str":"<e>"}]"#);
        assert_eq!(parse_tekken(far.as_bytes()).unwrap_err().kind(), &ErrorKind::Vocabulary);
        assert!(parse_tekken(b"{}").is_err());
    }
}
