//! The meta-schemas of the standard, as published by json-schema.org, by address.

macro_rules! schemas {
    ($($uri:literal => $file:literal,)*) => {
        /// Returns the text of the standard's schema at the absolute address `uri`, without a fragment.
        pub(super) fn schema(uri: &str) -> Option<&'static str> {
            match uri {
                $($uri => Some(include_str!(concat!("meta/", $file, ".json"))),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const ALL: &[&str] = &[$($uri),*];
    };
}

schemas! {
    "http://json-schema.org/draft-04/schema" => "draft4",
    "http://json-schema.org/draft-06/schema" => "draft6",
    "http://json-schema.org/draft-07/schema" => "draft7",
    "https://json-schema.org/draft/2019-09/schema" => "draft2019-09-schema",
    "https://json-schema.org/draft/2019-09/meta/applicator" => "draft2019-09-applicator",
    "https://json-schema.org/draft/2019-09/meta/content" => "draft2019-09-content",
    "https://json-schema.org/draft/2019-09/meta/core" => "draft2019-09-core",
    "https://json-schema.org/draft/2019-09/meta/format" => "draft2019-09-format",
    "https://json-schema.org/draft/2019-09/meta/meta-data" => "draft2019-09-meta-data",
    "https://json-schema.org/draft/2019-09/meta/validation" => "draft2019-09-validation",
    "https://json-schema.org/draft/2020-12/schema" => "draft2020-12-schema",
    "https://json-schema.org/draft/2020-12/meta/applicator" => "draft2020-12-applicator",
    "https://json-schema.org/draft/2020-12/meta/content" => "draft2020-12-content",
    "https://json-schema.org/draft/2020-12/meta/core" => "draft2020-12-core",
    "https://json-schema.org/draft/2020-12/meta/format-annotation" => "draft2020-12-format-annotation",
    "https://json-schema.org/draft/2020-12/meta/format-assertion" => "draft2020-12-format-assertion",
    "https://json-schema.org/draft/2020-12/meta/meta-data" => "draft2020-12-meta-data",
    "https://json-schema.org/draft/2020-12/meta/unevaluated" => "draft2020-12-unevaluated",
    "https://json-schema.org/draft/2020-12/meta/validation" => "draft2020-12-validation",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meta_schema_says_that_it_is_the_one_at_its_address() {
        for &uri in ALL {
            let schema: serde_json::Value =
                serde_json::from_str(schema(uri).expect("listed")).expect("JSON");
            let id = schema.get("$id").or_else(|| schema.get("id")).and_then(|id| id.as_str());
            assert_eq!(id.map(|id| id.trim_end_matches('#')), Some(uri));
        }
    }
}
