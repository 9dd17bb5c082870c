//! Host names, addresses, mailboxes and resource identifiers.

use std::fmt::Write;

use crate::error::Error;
use crate::frontend::json_schema::format::Builder;
use crate::ids::ExprId;

/// A percent-encoded octet.
const ENCODED: &str = "%[0-9A-Fa-f]{2}";

/// `unreserved` and `sub-delims` of RFC 3986, as members of a class.
const UNRESERVED: &str = r"A-Za-z0-9\-._~";
const SUB_DELIMS: &str = "!$&'()*+,;=";

/// `ucschar` and `iprivate` of RFC 3987, as members of a class.
const UCSCHAR: &str = r"\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}";
const IPRIVATE: &str = r"\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";

/// A label of a host name, with the letters beyond ASCII of `beyond`: at most 63 characters, no hyphen
/// at either end, and, unless it may be an A-label, none at both the third and the fourth place.
fn label(beyond: &str, a_label: bool) -> String {
    let letter = format!("[A-Za-z0-9{beyond}]");
    let inner = format!(r"[A-Za-z0-9\-{beyond}]");
    if a_label {
        return format!("{letter}(?:{inner}{{0,61}}{letter})?");
    }
    format!(
        "(?:{letter}(?:{inner}{{0,2}}{letter})?\
         |{letter}{inner}(?:{letter}{inner}|-{letter}){inner}{{0,58}}{letter})"
    )
}

/// The dotted quad.
pub(super) fn ipv4() -> String {
    let octet = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// An address of eight groups, or one with `::` and at most `most` groups beside it. The last two
/// groups may be a dotted quad.
pub(super) fn ipv6(most: usize) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let ipv4 = ipv4();
    let mut pattern = format!("(?:{group}:){{6}}(?:{group}:{group}|{ipv4})");
    for left in 0..=most {
        pattern.push('|');
        if left > 0 {
            let _ = write!(pattern, "(?:{group}:){{{}}}{group}", left - 1);
        }
        pattern.push_str("::");
        let right = most - left;
        if right > 0 {
            let _ = write!(pattern, "(?:(?:{group}:){{0,{}}}{group})?", right - 1);
        }
        if right > 1 {
            // An alternative of its own: the quad counts for two groups.
            pattern.push('|');
            if left > 0 {
                let _ = write!(pattern, "(?:{group}:){{{}}}{group}", left - 1);
            }
            let _ = write!(pattern, "::(?:{group}:){{0,{}}}{ipv4}", right - 2);
        }
    }
    format!("(?:{pattern})")
}

/// `URI` or `URI-reference` of RFC 3986; with `iri` their namesakes of RFC 3987.
pub(super) fn uri(iri: bool, reference: bool) -> String {
    let (beyond, private) = if iri { (UCSCHAR, IPRIVATE) } else { ("", "") };
    let plain = format!("{UNRESERVED}{beyond}{SUB_DELIMS}");
    let pchar = format!("(?:[{plain}:@]|{ENCODED})");
    let segments = format!("(?:/{pchar}*)*");
    let absolute = format!("/(?:{pchar}+{segments})?");
    let userinfo = format!("(?:[{plain}:]|{ENCODED})*");
    let name = format!("(?:[{plain}]|{ENCODED})*");
    let ipv6 = ipv6(7);
    let future = format!(r"[vV][0-9A-Fa-f]+\.[{UNRESERVED}{SUB_DELIMS}:]+");
    let authority = format!(r"//(?:{userinfo}@)?(?:\[(?:{ipv6}|{future})\]|{name})(?::\d*)?");
    let query = format!(r"(?:\?(?:[{plain}:@/?{private}]|{ENCODED})*)?");
    let fragment = format!("(?:#(?:[{plain}:@/?]|{ENCODED})*)?");
    let uri = format!(
        r"[A-Za-z][A-Za-z0-9+\-.]*:(?:{authority}{segments}|{absolute}|{pchar}+{segments}|)"
    );
    let relative =
        format!("(?:{authority}{segments}|{absolute}|(?:[{plain}@]|{ENCODED})+{segments}|)");
    let path = if reference { format!("(?:{uri}|{relative})") } else { uri };
    format!("{path}{query}{fragment}")
}

/// `URI-Template`.
pub(super) fn uri_template() -> String {
    let literal = format!(r"[!#$&-;=?-[\]_a-z~{UCSCHAR}{IPRIVATE}]|{ENCODED}");
    let varchar = format!("(?:[A-Za-z0-9_]|{ENCODED})");
    let varspec = format!(r"{varchar}(?:\.?{varchar})*(?::[1-9]\d{{0,3}}|\*)?");
    format!(r"(?:{literal}|\{{[+#./;?&=,!@|]?{varspec}(?:,{varspec})*\}})*")
}

impl Builder<'_> {
    pub(super) fn hostname(&mut self) -> Result<ExprId, Error> {
        self.domain(&label("", self.around))
    }

    /// Labels with dots between them, at most 253 characters.
    fn domain(&mut self, label: &str) -> Result<ExprId, Error> {
        let labels = self.pattern(&format!(r"{label}(?:\.{label})*"))?;
        self.at_most(labels, 253)
    }

    /// `Mailbox`, perhaps with characters beyond ASCII (RFC 6531).
    pub(super) fn email(&mut self, international: bool) -> Result<ExprId, Error> {
        let beyond = if international { r"\u{80}-\u{10ffff}" } else { "" };
        let atom = format!(r"[A-Za-z0-9!#$%&'*+\-/=?^_`{{|}}~{beyond}]+");
        let quoted = format!(r#""(?:[ !#-[\]-~{beyond}]|\\[ -~])*""#);
        let local = self.pattern(&format!(r"{atom}(?:\.{atom})*|{quoted}"))?;
        let local = self.at_most(local, 64)?;
        let at = self.pattern("@")?;
        let domain = self.domain(&label(beyond, self.around))?;
        // RFC 5321 lets `::` stand for two groups or more.
        let (ipv4, ipv6) = (ipv4(), ipv6(6));
        let address = self.pattern(&format!(r"\[(?:{ipv4}|[Ii][Pp][Vv]6:{ipv6})\]"))?;
        let domain = self.arena.alt2(domain, address);
        Ok(self.arena.concat(&[local, at, domain]))
    }
}
