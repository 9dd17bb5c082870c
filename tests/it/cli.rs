//! The `schemac` command, run as a process: what it prints, and its exit codes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::schemas::{instances, shipped, validator};

/// Runs the command in the root of the repository.
fn schemac(args: &[&str]) -> Output {
    schemac_with_input(args, "")
}

fn schemac_with_input(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_schemac"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs the command with `--format json` and returns its lines.
fn json_lines(args: &[&str]) -> Vec<Value> {
    let output = schemac(&[args, &["--format", "json"]].concat());
    let text = stdout(&output);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything that the command prints, with its exit code.
fn transcript(output: &Output) -> String {
    format!("{}{}exit code {}\n", stdout(output), stderr(output), code(output))
}

/// A folder for the files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Returns the commands of the first `sh` block of the README.
fn readme_commands() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let block = readme.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    block.lines().map(str::to_owned).collect()
}

#[test]
fn the_first_command_of_the_readme_prints_valid_json() {
    let commands = readme_commands();
    let args = commands[0].strip_prefix("cargo run --quiet -- ").unwrap();
    let args: Vec<_> = args.split(' ').collect();
    let output = schemac(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let schema = args.iter().find(|arg| arg.ends_with(".json")).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join(schema);
    let validator = validator(&std::fs::read_to_string(schema).unwrap());
    let text = stdout(&output);
    assert!(!text.is_empty());
    for document in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        let document = document.unwrap();
        assert!(validator.is_valid(&document), "{document}");
    }
}

#[test]
fn generated_documents_are_valid_for_every_shipped_schema() {
    for (name, schema) in shipped() {
        let validator = validator(&schema);
        let path = format!("schemas/{name}.json");
        let lines = json_lines(&["generate", &path, "--count", "25", "--max-tokens", "300"]);
        assert_eq!(lines.len(), 25, "{name}: {lines:?}");
        for line in lines {
            let text = line["text"].as_str().unwrap();
            let document: Value = serde_json::from_str(text)
                .unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            assert!(validator.is_valid(&document), "{name}: {text}");
        }
    }
}

#[test]
fn generating_is_repeatable_and_its_seeds_differ() {
    let generate = |more: &[&str]| {
        let args = ["generate", "schemas/person.json", "--whitespace", "compact"];
        stdout(&schemac(&[&args, more].concat()))
    };
    let first = generate(&["--count", "3", "--seed", "7"]);
    assert_eq!(first, generate(&["--count", "3", "--seed", "7"]));
    let second = generate(&["--seed", "8"]);
    assert_eq!(first.lines().nth(1), second.lines().next());
    assert_ne!(first.lines().next(), first.lines().nth(1));
}

#[test]
fn shipped_instances_match_exactly_when_they_are_listed_as_accepted() {
    for (name, _) in shipped() {
        let schema = format!("schemas/{name}.json");
        for kind in ["accept", "reject"] {
            let file = format!("schemas/{name}.{kind}.jsonl");
            let lines = json_lines(&["check", &schema, "--file", &file, "--lines"]);
            let texts = instances(&name, kind);
            assert_eq!(lines.len(), texts.len(), "{name}: {lines:?}");
            for (line, text) in lines.iter().zip(texts) {
                assert_eq!(line["matches"], kind == "accept", "{name}: {text}: {line}");
            }
        }
    }
}

#[test]
fn check_shows_where_a_text_stops_and_what_would_be_legal() {
    let text = r#"{"name":"Ada","age":200,"languages":["en"]}"#;
    let args = ["check", "schemas/person.json", "--text", text, "--tokens", "5"];
    insta::assert_snapshot!(transcript(&schemac(&args)));
}

#[test]
fn check_shows_how_an_incomplete_text_could_end() {
    let text = r#"{"name":"Ada","#;
    let args = [
        "check",
        "schemas/person.json",
        "--whitespace",
        "compact",
        "--text",
        text,
        "--tokens",
        "5",
    ];
    insta::assert_snapshot!(transcript(&schemac(&args)));
}

#[test]
fn check_reads_standard_input_and_drops_one_line_break() {
    let args = ["check", "--regex", "[a-z]+\n?", "--format", "json"];
    let lengths = [("ab", true), ("ab\n", true), ("ab\n\n", true), ("ab\n\n\n", false)];
    for (input, matches) in lengths {
        let output = schemac_with_input(&args, input);
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line["matches"], matches, "{input:?}");
        assert_eq!(code(&output), i32::from(!matches), "{input:?}");
    }
}

#[test]
fn explain_describes_grammar_automaton_and_what_is_legal() {
    let args =
        ["explain", "schemas/tool_call.json", "--whitespace", "compact", "--at", r#"{"tool":"#];
    let output = schemac(&args);
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    let legal: String =
        text.lines().skip_while(|line| !line.starts_with("after")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(legal);
    for part in
        ["grammar: JSON Schema", "vocabulary: ", "compiled in ", "choices: ", "whitespace compact"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn errors_in_grammars_point_into_them() {
    let folder = Folder::new("errors_in_grammars_point_into_them");
    let schema = folder.file("bad.json");
    std::fs::write(
        &schema,
        "{\n  \"properties\": {\n    \"age\": {\"type\": \"integr\"}\n  }\n}\n",
    )
    .unwrap();
    let gbnf = folder.file("bad.gbnf");
    std::fs::write(&gbnf, "root ::= \"a\" other\nitem ::= [0-9\n").unwrap();
    let mut all = String::new();
    for args in [["check", &schema], ["check", &gbnf], ["check", "--regex=a(b|c"]] {
        let output = schemac(&args);
        assert_eq!(code(&output), 3, "{}", transcript(&output));
        all += &stderr(&output).replace(&folder.file(""), "");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn errors_are_json_objects_on_request() {
    let cases: [(&str, &[&str]); 4] = [
        ("syntax", &["check", "--regex", "a("]),
        ("io", &["check", "no/such/file.json"]),
        ("usage", &["check", "--no-such-option"]),
        ("token_budget", &["generate", "--regex", "[a-z]{40}", "--max-tokens", "3"]),
    ];
    for (kind, args) in cases {
        let lines = json_lines(args);
        let error = &lines[0]["error"];
        assert_eq!(error["kind"], kind, "{error}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        assert_eq!(error["span"]["start"].is_u64(), kind == "syntax", "{error}");
    }
}

#[test]
fn every_documented_exit_code_is_reached() {
    let folder = Folder::new("every_documented_exit_code_is_reached");
    let foreign = folder.file("foreign.schemac");
    std::fs::write(&foreign, "not an artifact").unwrap();
    let cases: [(i32, &[&str]); 12] = [
        (0, &["check", "--regex", "ab", "--text", "ab"]),
        (1, &["check", "--regex", "ab", "--text", "ax"]),
        (1, &["check", "--regex", "ab", "--text", "a"]),
        (2, &["check", "--regex", "ab", "--no-such-option"]),
        (2, &["check", "--text", "a"]),
        (2, &["generate", "--regex", "ab", "--temperature", "-1"]),
        (2, &["generate", "--regex", "ab", "--budget", "stats=1"]),
        (3, &["check", "--regex", "a(", "--text", "a"]),
        (3, &["check", "--regex", "a{9}", "--budget", "expressions=3", "--text", "a"]),
        (4, &["check", "no/such/file.json", "--text", "a"]),
        (4, &["check", &foreign, "--text", "a"]),
        (5, &["generate", "--regex", "[a-z]{40}", "--max-tokens", "3"]),
    ];
    for (expected, args) in cases {
        let output = schemac(args);
        assert_eq!(code(&output), expected, "{args:?}\n{}", transcript(&output));
        assert_eq!(output.stderr.is_empty(), expected < 2, "{args:?}\n{}", transcript(&output));
    }
}

#[test]
fn an_artifact_does_the_work_of_its_grammar() {
    let folder = Folder::new("an_artifact_does_the_work_of_its_grammar");
    let artifact = folder.file("calendar.schemac");
    for lazy in [&["--lazy"][..], &[]] {
        let compile = [&["compile", "schemas/calendar_event.json", "-o", &artifact], lazy].concat();
        let output = schemac(&compile);
        assert_eq!(code(&output), 0, "{}", transcript(&output));
        for source in ["schemas/calendar_event.json", &artifact] {
            for (kind, expected) in [("accept", 0), ("reject", 1)] {
                let file = format!("schemas/calendar_event.{kind}.jsonl");
                let output = schemac(&["check", source, "--lines", "--file", &file]);
                assert_eq!(code(&output), expected, "{}", transcript(&output));
            }
        }
        let generate = |source| stdout(&schemac(&["generate", source, "--count", "5"]));
        assert_eq!(generate("schemas/calendar_event.json"), generate(&artifact));
    }
}

#[test]
fn damaged_artifacts_are_refused_with_the_reason() {
    let folder = Folder::new("damaged_artifacts_are_refused_with_the_reason");
    let artifact = folder.file("whole.schemac");
    schemac(&["compile", "--regex", "[a-c]{3}", "-o", &artifact, "--lazy"]);
    let whole = std::fs::read(&artifact).unwrap();
    let damaged = folder.file("damaged.schemac");
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for bytes in [&whole[..whole.len() - 1], &whole[..9], &flipped, &[]] {
        std::fs::write(&damaged, bytes).unwrap();
        let output = schemac(&["check", &damaged, "--text", "abc"]);
        assert_eq!(code(&output), 4, "{}", transcript(&output));
        assert!(stderr(&output).contains("artifact"), "{}", transcript(&output));
    }
}

#[test]
fn the_embedded_tokenizer_agrees_with_itself() {
    let lines = json_lines(&["tokenizer"]);
    assert_eq!(lines[0]["kind"], "embedded");
    assert!(lines[0]["end_tokens"].as_array().is_some_and(|tokens| tokens.len() == 1));
    assert_eq!(code(&schemac(&["tokenizer"])), 0);
}

/// Takes the times out of a line of `schemac suite`.
fn without_times(mut line: Value) -> String {
    for (name, value) in line.as_object_mut().into_iter().flatten() {
        if name.ends_with("_us") {
            *value = Value::from("time");
        }
        for (name, value) in value.as_object_mut().into_iter().flatten() {
            if name.ends_with("_us") {
                *value = Value::from("times");
            }
        }
    }
    line.to_string() + "\n"
}

#[test]
fn suite_reads_its_three_forms_and_sums_them_up() {
    let lines = json_lines(&["suite", "tests/data/suite", "--threads", "2"]);
    insta::assert_snapshot!(lines.into_iter().map(without_times).collect::<String>());
    assert_eq!(code(&schemac(&["suite", "tests/data/suite"])), 1);
    assert_eq!(code(&schemac(&["suite", "tests/data/suite/official.json"])), 0);
}

#[test]
fn suite_filters_limits_and_leaves_times_out() {
    let folder = "tests/data/suite";
    let names = |args: &[&str]| {
        let lines = json_lines(&[&["suite", folder], args].concat());
        lines.iter().filter_map(|line| Some(line["name"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--limit", "2"]), ["regex", "gbnf"]);
    assert_eq!(names(&["--filter", "integers"]), ["official/integers"]);
    let line = &json_lines(&["suite", folder, "--limit", "1", "--no-mask-times"])[0];
    assert!(line.get("mask_us").is_none(), "{line}");
    let line = &json_lines(&["suite", folder, "--limit", "1"])[0];
    assert!(line["mask_us"].as_array().is_some_and(|times| times.len() > 5), "{line}");
}

#[test]
fn suite_reports_malformed_lines_and_goes_on() {
    let folder = Folder::new("suite_reports_malformed_lines_and_goes_on");
    let file = folder.file("suite.jsonl");
    std::fs::write(&file, "{\"name\": 1}\n{\"name\":\"n\",\"schema\":true,\"tests\":[]}\n")
        .unwrap();
    let lines = json_lines(&["suite", &file]);
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["error"]["kind"], "malformed_case");
    assert_eq!(lines[2]["summary"]["compiled"], 1);
}

#[cfg(not(feature = "candle"))]
#[test]
fn a_build_without_candle_says_what_a_model_needs() {
    let output = schemac(&["generate", "schemas/person.json", "--model", "model.gguf"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--features candle"), "{}", stderr(&output));
}

#[test]
fn explanations_show_every_decision_as_table_json_and_drawing() {
    let folder = Folder::new("explain");
    let plot = folder.0.join("steps.svg");
    let args = ["generate", "--regex", "[ab]c{2}", "--seed", "3", "--top-k", "40"];
    let lines = json_lines(&[&args[..], &["--explain", "--plot", plot.to_str().unwrap()]].concat());
    assert_eq!(lines[0]["policy"]["top_k"], 40);
    let steps = lines[1]["explanation"]["steps"].as_array().unwrap();
    let summary = &lines[1]["explanation"]["summary"];
    assert_eq!(lines[1]["tokens"], steps.len());
    assert_eq!(summary["steps"], steps.len());
    let sum: f64 = steps.iter().map(|s| s["mass_removed"].as_f64().unwrap()).sum();
    assert!((summary["mass_removed"].as_f64().unwrap() - sum).abs() < 1e-9);
    let last = &steps[steps.len() - 1];
    assert_eq!((&last["legal"], &last["after"]["rank"]), (&1.into(), &1.into()));
    assert_eq!(last["after"]["log_probability"], 0.0);
    let names: Vec<_> = last["stages"].as_array().unwrap().iter().map(|s| &s["stage"]).collect();
    assert_eq!(names, ["model", "mask", "top_k"]);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 3);
    let text = stdout(&schemac(&[&args[..], &["--explain"]].concat()));
    assert!(text.starts_with("policy: temperature 1, seed 3, top_k 40, max_tokens 1000; order:"));
    assert!(text.contains("tokens: ln p "), "{text}");
}

#[test]
fn policies_come_from_presets_and_from_files_of_other_projects() {
    let folder = Folder::new("policies");
    let file = |name: &str, text: &str| folder.write(name, text);
    let policy = |args: &[&str]| {
        let args = [&["generate", "--regex", "ab", "--explain"], args].concat();
        json_lines(&args)[0].clone()
    };
    assert_eq!(policy(&["--preset", "conversation"])["policy"]["top_p"], 0.9);
    let own = file("own.json", r#"{"temperature": 0.5, "min_p": 0.1}"#);
    let set = policy(&["--policy", &own, "--min-p", "0.2", "--order", "min_p,temperature"]);
    assert_eq!(
        (&set["policy"]["temperature"], &set["policy"]["min_p"]),
        (&0.5.into(), &0.2.into())
    );
    let order = set["policy"]["order"].as_array().unwrap();
    assert_eq!((&order[3], &order[4]), (&"min_p".into(), &"temperature".into()));
    let vllm = file("vllm.json", r#"{"top_k": -1, "temperature": 0.0}"#);
    let read = policy(&["--policy", &vllm, "--policy-of", "vllm"]);
    assert_eq!(
        (&read["policy"]["max_tokens"], &read["policy"]["top_k"]),
        (&16.into(), &Value::Null)
    );
    // The same file in our own terms: −1 is no number of tokens.
    let error = &policy(&["--policy", &vllm])["error"];
    assert_eq!(error["kind"], "invalid_option");
    let beams = file("beams.json", r#"{"num_beams": 4}"#);
    let error = &policy(&["--policy", &beams, "--policy-of", "hugging_face"])["error"];
    assert!(error["message"].as_str().unwrap().contains("a beam search"), "{error}");
    let unknown = file("unknown.json", r#"{"best_of": 4}"#);
    let error = &policy(&["--policy", &unknown, "--policy-of", "vllm"])["error"];
    assert!(error["message"].as_str().unwrap().contains("`best_of`"), "{error}");
}

#[test]
fn options_win_over_a_policy_and_what_it_says_over_defaults() {
    let folder = Folder::new("options_win");
    let file = |name: &str, text: &str| folder.write(name, text);
    let own = file("own.json", r#"{"temperature": 1.0, "seed": 7, "max_tokens": 5000}"#);
    let vllm = file("vllm.json", r#"{"seed": 7, "logit_bias": {"1": -5}}"#);
    let generate = |args: &[&str]| {
        json_lines(&[&["generate", "--regex", "[a-z]{8,20}", "--explain"], args].concat())
    };
    let plain = generate(&["--seed", "7"]);
    let read = generate(&["--policy", &own]);
    assert_eq!(
        (&read[0]["policy"]["seed"], &read[0]["policy"]["max_tokens"]),
        (&7.into(), &5000.into())
    );
    assert_eq!((&read[1]["text"], &read[1]["seed"]), (&plain[1]["text"], &7.into()));
    let set = generate(&["--policy", &own, "--seed", "8", "--max-tokens", "30"]);
    assert_eq!(
        (&set[0]["policy"]["seed"], &set[0]["policy"]["max_tokens"]),
        (&8.into(), &30.into())
    );
    // 16 tokens are vLLM's default, which an option changes too.
    let read = generate(&["--policy", &vllm, "--policy-of", "vllm", "--max-tokens", "40"]);
    assert_eq!(read[0]["policy"]["max_tokens"], 40);
    // A token that is banned: JSON has no −∞.
    let ban = file("ban.json", r#"{"logit_bias": {"97": null, "98": 1.5}}"#);
    let read = generate(&["--policy", &ban]);
    assert_eq!(read[0]["policy"]["logit_bias"].to_string(), r#"{"97":null,"98":1.5}"#);
}

#[test]
fn the_parameters_of_a_model_folder_name_end_tokens_outputs_and_beams() {
    let folder = Folder::new("model_folder");
    let file = |name: &str, text: &str| folder.write(name, text);
    let special = |id: u32, name: &str| {
        serde_json::json!({"id": id, "content": name, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
    };
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "post_processor": null, "decoder": {"type": "ByteLevel"},
        "added_tokens": [special(2, "<end>"), special(3, "<turn>")],
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<end>": 2, "<turn>": 3}, "merges": []}
    });
    let tokenizer = file("tokenizer.json", &tokenizer.to_string());
    let config = file(
        "generation_config.json",
        r#"{"eos_token_id": [2, 3], "pad_token_id": 2, "do_sample": true, "temperature": 0.5,
            "top_k": 4, "max_new_tokens": 9, "num_return_sequences": 2}"#,
    );
    let generate = |parameters: &str, project: &str, more: &[&str]| {
        let args = ["generate", "--regex", "a{2}", "--tokenizer", &tokenizer];
        let args = [&args[..], &["--policy", parameters, "--policy-of", project], more].concat();
        json_lines(&args)
    };
    // How many tokens may end the output.
    let ends = |parameters: &str, project: &str, more: &[&str]| {
        let lines = generate(parameters, project, &[&["--explain"], more].concat());
        lines[1]["explanation"]["steps"][2]["legal"].as_u64()
    };
    assert_eq!(generate(&config, "hugging_face", &[]).len(), 2);
    assert_eq!(generate(&config, "hugging_face", &["--count", "5"]).len(), 5);
    assert_eq!(ends(&config, "hugging_face", &[]), Some(2));
    let one = file("one.json", r#"{"eos_token_id": 3}"#);
    assert_eq!(ends(&one, "hugging_face", &[]), Some(1));
    assert_eq!(ends(&config, "hugging_face", &["--end-token", "<end>"]), Some(1));
    // They join the two of the tokenizer; a text can be one.
    let stop = file("stop.json", r#"{"stop_token_ids": [1]}"#);
    assert_eq!(ends(&stop, "vllm", &[]), Some(3));
    let outside = file("outside.json", r#"{"eos_token_id": 4}"#);
    let error = &generate(&outside, "hugging_face", &[])[0]["error"];
    assert_eq!(error["kind"], "vocabulary");
    let args = ["generate", "--regex", "a", "--policy", &one, "--policy-of", "hugging_face"];
    let output = schemac(&args);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--tokenizer"), "{}", stderr(&output));

    let beams = file("beams.json", r#"{"num_beams": 4, "num_return_sequences": 3}"#);
    let args = ["generate", "--regex", "[ab]{1,3}", "--policy", &beams, "--policy-of"];
    let found = json_lines(&[&args[..], &["hugging_face"]].concat());
    let scores: Vec<f64> = found.iter().map(|line| line["score"].as_f64().unwrap()).collect();
    assert!(scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    // What a search would not look at is not passed over.
    for more in [&["--temperature", "0.5"][..], &["--order", "top_p"], &["--explain"]] {
        let output = schemac(&[&args[..], &["hugging_face"], more].concat());
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("a beam search"), "{}", stderr(&output));
    }
    // The mean, which is the default there.
    let mean = found[0]["log_probability"].as_f64().unwrap() / found[0]["tokens"].as_f64().unwrap();
    assert!((scores[0] - mean).abs() < 1e-12);
}

#[test]
fn a_beam_prints_the_most_probable_texts_best_first() {
    let search = |more: &[&str]| {
        json_lines(&[&["generate", "--regex", "[ab]{1,3}", "--count", "5"], more].concat())
    };
    // All fourteen texts, of which five are printed.
    let all = search(&["--beam", "64"]);
    assert_eq!(all.len(), 5);
    let scores: Vec<f64> = all.iter().map(|l| l["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b));
    assert!(all.iter().all(|l| l["score"] == l["log_probability"]));
    let one = search(&["--beam", "1"]);
    assert!(one.len() == 1 && one[0]["score"].as_f64().unwrap() <= scores[0]);
    let long = search(&["--beam", "64", "--length-exponent", "3"]);
    assert!(long[0]["tokens"].as_u64() >= all[0]["tokens"].as_u64());
    let short = search(&["--beam", "64", "--length-exponent", "-3"]);
    assert!(short[0]["tokens"].as_u64() <= all[0]["tokens"].as_u64());
    // What would not be looked at is not passed over.
    for more in [&["--length-exponent", "1"][..], &["--beam", "2", "--top-p", "0.5"]] {
        assert_eq!(code(&schemac(&[&["generate", "--regex", "a"], more].concat())), 2);
    }
}
