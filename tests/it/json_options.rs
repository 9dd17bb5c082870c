//! Options of JSON Schema: what each lets through, and that departures are reported.

use schemac::frontend::json_schema::number::IntegerSpelling;
use schemac::frontend::json_schema::{
    Formats, JsonOptions, PropertyOrder, Status, Vocabularies, compile, compile_with, report,
};
use schemac::{ErrorKind, Limits};

use crate::json_schema::check;

/// Returns the pointers of the departures.
fn departures(schema: &str, options: &JsonOptions) -> Vec<String> {
    let grammar = compile(schema, options, &Limits::default()).unwrap();
    grammar.departures.into_iter().map(|departure| departure.pointer).collect()
}

#[test]
fn integers_are_written_as_asked_for() {
    let schema = r#"{"type":"integer","minimum":-3,"maximum":120}"#;
    let with = |spelling| JsonOptions::default().integers(spelling);
    let digits = ["0", "-3", "120", "-0"];
    let fractions = ["1.0", "-3.00", "120.0"];
    let exponents = ["1e2", "1.2E+2", "5e0", "-3.0e0"];
    let never = ["121", "1.5", "-4", "121.0", "1.25e1", "2e2", "1.", "01"];
    check(
        schema,
        &with(IntegerSpelling::Digits),
        &digits,
        &[&fractions[..], &exponents, &never].concat(),
    );
    check(
        schema,
        &with(IntegerSpelling::Fraction),
        &[&digits[..], &fractions].concat(),
        &[&exponents[..], &never].concat(),
    );
    check(
        schema,
        &with(IntegerSpelling::Scientific),
        &[&digits[..], &fractions, &exponents].concat(),
        &never,
    );
    // Where elements must differ there is one spelling whatever is asked for.
    let unique = r#"{"uniqueItems":true,"items":{"type":"integer"}}"#;
    check(unique, &with(IntegerSpelling::Fraction), &["[1,2]"], &["[1.0]", "[1,1.0]"]);
    let excluded = r#"{"type":"integer","not":{"enum":[7]},"minimum":7,"maximum":8}"#;
    check(excluded, &with(IntegerSpelling::Scientific), &["8", "8.0"], &["7", "7.0", "7e0"]);
}

#[test]
fn hints_order_the_declared_members() {
    let options = JsonOptions::default();
    let ascending = r#"{"a":1,"b":1,"c":1}"#;
    let hinted = r#"{"c":1,"b":1,"a":1}"#;
    for schema in [
        r#"{"properties":{"a":{"x-order":3},"b":{"x-order":2.5},"c":{"x-order":-1}}}"#,
        r#"{"properties":{"a":{},"b":{},"c":{}},"x-order":["c","b"]}"#,
        r#"{"properties":{"a":{},"b":{},"c":{}},"propertyOrdering":["c","none","b","a"]}"#,
        // Those with a hint come first.
        r#"{"properties":{"a":{},"b":{"x-order":9},"c":{"x-order":8}}}"#,
    ] {
        check(schema, &options, &[hinted], &[ascending]);
        check(
            schema,
            &options.clone().property_order(PropertyOrder::Any),
            &[hinted, ascending],
            &[],
        );
    }
    // A member's own list orders its members; the member itself has no place by it.
    let inner = r#"{"properties":{"z":{"properties":{"a":{},"b":{}},"x-order":["b","a"]},"a":{}}}"#;
    check(
        inner,
        &options,
        &[r#"{"z":{"b":1,"a":1},"a":1}"#],
        &[r#"{"z":{"a":1,"b":1}}"#, r#"{"a":1,"z":{}}"#],
    );
    let hinted = r#"{"propertyOrdering":["a"],"x-order":["b"],"properties":{}}"#;
    let reports = report(hinted, &options, &Limits::default(), None).unwrap();
    let status: Vec<_> = reports.iter().map(|report| report.status).collect();
    assert_eq!(status, [Status::Structure, Status::Structure, Status::Enforced]);
    let error = compile(r#"{"properties":{"a":{"x-order":"1"}}}"#, &options, &Limits::default());
    assert_eq!(error.unwrap_err().pointer(), Some("/properties/a/x-order"));
}

#[test]
fn formats_assert_as_far_as_asked_for() {
    let schema = r#"{"prefixItems":[{"format":"date"},{"format":"byte"},{"format":"int32"},{"format":"mine"}]}"#;
    let with = |formats| JsonOptions::default().formats(formats);
    let error = compile(schema, &with(Formats::Assert), &Limits::default()).unwrap_err();
    assert_eq!(error.pointer(), Some("/prefixItems/3/format"));
    let day = r#"["2024-02-29"]"#;
    let no_day = r#"["2023-02-29"]"#;
    let no_byte = r#"["2024-02-29","!"]"#;
    let no_int = r#"["2024-02-29","",3000000000]"#;
    let place = |i: usize| format!("/prefixItems/{i}/format");
    check(schema, &with(Formats::AssertKnown), &[day], &[no_day, no_byte, no_int]);
    assert_eq!(departures(schema, &with(Formats::AssertKnown)), [place(3)]);
    check(schema, &with(Formats::AssertStandard), &[day, no_byte, no_int], &[no_day]);
    assert_eq!(departures(schema, &with(Formats::AssertStandard)), [place(1), place(2), place(3)]);
    check(schema, &with(Formats::Annotate), &[day, no_day, no_byte, no_int], &[]);
    assert_eq!(departures(schema, &with(Formats::Annotate)).len(), 4);
}

#[test]
fn unknown_vocabularies_are_an_error_or_reported() {
    let limits = Limits::default();
    let meta = |uri: &str| {
        let text = r#"{
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$vocabulary": {
                "https://json-schema.org/draft/2020-12/vocab/core": true,
                "https://json-schema.org/draft/2020-12/vocab/applicator": true,
                "https://json-schema.org/draft/2020-12/vocab/validation": true,
                "https://example.com/vocab/units": true
            }
        }"#;
        (uri == "https://example.com/meta").then(|| text.to_owned())
    };
    for schema in [
        r#"{"$schema": "https://example.com/meta", "type": "null", "unit": "m"}"#,
        r#"{"$schema": "https://example.com/unknown", "type": "null"}"#,
    ] {
        let strict = JsonOptions::default();
        let error = compile_with(schema, &strict, &limits, Some(&meta)).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::UnsupportedKeyword { .. } | ErrorKind::UnresolvedReference
            ),
            "{error}"
        );
        assert_eq!(error.pointer(), Some("/$schema"));
        for options in
            [strict.clone().vocabularies(Vocabularies::Any), strict.clone().lenient(true)]
        {
            let grammar = compile_with(schema, &options, &limits, Some(&meta)).unwrap();
            let departure = &grammar.departures[0];
            assert_eq!((departure.pointer.as_str(), grammar.departures.len()), ("/$schema", 1));
        }
    }
}

#[test]
fn every_departing_switch_is_reported_where_it_matters() {
    let options = JsonOptions::default();
    let closed = options.clone().closed_objects(true);
    let schema = r#"{"properties":{"a":{"additionalProperties":{},"properties":{"b":{}}}}}"#;
    assert_eq!(departures(schema, &closed), ["/properties"]);
    let any_of = options.one_of_as_any_of(true);
    assert_eq!(departures(r#"{"items":{"oneOf":[{},true]}}"#, &any_of), ["/items/oneOf"]);
}

#[test]
fn many_branches_with_patterns_are_read_in_any_order() {
    // The patterns overlap in every combination; which branch holds is known only at the end.
    let branch = |i: u32| {
        format!(
            r#"{{"properties":{{"type":{{"enum":["t{i}"]}},"value":{{"pattern":"^[a-z]*{i}[a-z0-9]*$"}}}}}}"#
        )
    };
    let branches: Vec<_> = (0..20).map(branch).collect();
    let schema = format!(r#"{{"anyOf":[{}],"required":["type","value"]}}"#, branches.join(","));
    let any = JsonOptions::default().property_order(PropertyOrder::Any);
    check(
        &schema,
        &any,
        &[r#"{"value":"ab3c7","type":"t3"}"#, r#"{"type":"t7","value":"7"}"#],
        &[r#"{"value":"ab3c7","type":"t7"}"#, r#"{"value":"x","type":"t1"}"#, r#"{"value":"1"}"#],
    );
}
