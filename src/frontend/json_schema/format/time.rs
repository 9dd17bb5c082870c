//! Dates, times and durations of RFC 3339.

use std::fmt::Write;

use crate::error::Error;
use crate::frontend::json_schema::format::Builder;
use crate::ids::ExprId;

/// `full-date`: years of four digits, the days of each month, and 29 February in leap years (those
/// that 4 divides and 100 does not, or that 400 divides).
pub(super) const DATE: &str = r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";

/// `full-time` without leap seconds.
const TIME: &str =
    r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)";

/// `partial-time`, with any second 60 or with none.
pub(super) fn local_time(leap: bool) -> String {
    let second = if leap { "(?:[0-5]\\d|60)" } else { "[0-5]\\d" };
    format!(r"(?:[01]\d|2[0-3]):[0-5]\d:{second}(?:\.\d+)?")
}

/// `full-date`, `T` and [`local_time`].
pub(super) fn local_date_time(leap: bool) -> String {
    format!("{DATE}[tT]{}", local_time(leap))
}

/// The second of a leap second, with its fraction.
const LEAP: &str = r"60(?:\.\d+)?";

/// `duration`.
pub(super) fn duration() -> String {
    let time = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)";
    let date = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)";
    format!(r"P(?:\d+W|{time}|{date}(?:{time})?)")
}

impl Builder<'_> {
    /// `full-time`.
    pub(super) fn time(&mut self) -> Result<ExprId, Error> {
        let ordinary = self.pattern(TIME)?;
        let zulu = self.pattern(&format!("23:59:{LEAP}[zZ]"))?;
        let shifted = self.shifted_leap_second()?;
        Ok(self.arena.alt(&[ordinary, zulu, shifted]))
    }

    /// `date-time`.
    pub(super) fn date_time(&mut self) -> Result<ExprId, Error> {
        let date = self.pattern(DATE)?;
        let separator = self.pattern("[tT]")?;
        let time = self.time()?;
        Ok(self.arena.concat(&[date, separator, time]))
    }

    /// A second 60 with an offset from UTC by which it is 23:59 there.
    ///
    /// The offset follows from the hour and the minute: east of UTC it is one minute more than the
    /// time of day, west of it the time that is left until 23:59. One language ties the hours, one
    /// the minutes, and their intersection is a tenth of the size of the 2,880 cases.
    fn shifted_leap_second(&mut self) -> Result<ExprId, Error> {
        let mut hours = String::new();
        for hour in 0..24 {
            let (west, next) = (23 - hour, (hour + 1) % 24);
            // Writing to a string cannot fail.
            let _ = write!(
                hours,
                r"|{hour:02}:(?:(?:[0-4]\d|5[0-8]):{LEAP}(?:\+{hour:02}|-{west:02})|59:{LEAP}(?:\+{next:02}|-{west:02})):\d\d",
            );
        }
        let mut minutes = String::new();
        for minute in 0..60 {
            let (west, next) = (59 - minute, (minute + 1) % 60);
            let _ =
                write!(minutes, r"|\d\d:{minute:02}:{LEAP}(?:\+\d\d:{next:02}|-\d\d:{west:02})");
        }
        let hours = self.pattern(hours.trim_start_matches('|'))?;
        let minutes = self.pattern(minutes.trim_start_matches('|'))?;
        Ok(self.arena.and(&[hours, minutes]))
    }
}
