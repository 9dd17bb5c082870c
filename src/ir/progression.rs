//! Arithmetic progressions as a regular language: the decimal texts of the multiples of a step
//! between two bounds, read digit by digit.
//!
//! The automaton of such a language can be far too large to build (`multipleOf: 1000003` up to
//! 10¹²), so only the states that a text reaches are made. A state knows the position, how the
//! digits so far compare with those of the bounds, and their residue. It is live if some number
//! that continues the digits is a multiple inside the bounds: the numbers with `k` more digits form
//! an interval, and whether an interval contains a multiple is one division. So only live states
//! are ever returned, whatever the step and bounds.
//!
//! Cost of one state's transitions: about thirty operations on integers as long as the bounds.

use std::cmp::Ordering;

use hashbrown::HashMap;
use num_bigint::BigUint;

use crate::ir::ByteSet;

/// States are merged by language only if telling it needs at most this many completions, which a
/// step of less than 2^64 does. For others only equal residues are merged.
const MERGED_DIGITS: u32 = 64;

/// Digits of the numbers of a progression, which bounds the cost of one transition.
const MAX_DIGITS: u32 = 9_000;

/// The multiples of a step from `low` to `high`, as decimal texts without sign or exponent.
///
/// Values are counted in units of 10^−`scale`: with a scale of 2 and a step of 25 they are the
/// multiples of 0.25. Superfluous zeros may follow the fraction digits (`0.50`), not precede the
/// integer digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Progression {
    /// The step in units, at least 1.
    pub step: BigUint,
    /// How many fraction digits a unit has.
    pub scale: u32,
    /// The least member in units, a multiple of the step.
    pub low: BigUint,
    /// The greatest member in units, a multiple of the step and at least `low`.
    pub high: Option<BigUint>,
    /// Whether a point and fraction digits may be written; if not, `scale` must be 0.
    pub fraction: bool,
}

/// Where in a text a state stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Position {
    /// Before the first digit.
    Start,
    /// After a leading zero, which no digit may follow.
    Zero,
    /// After this many integer digits, the first of them not zero. Without an upper bound, one more
    /// than the lower bound has stands for any greater number.
    Integer(u32),
    /// After the point.
    Point,
    /// After a fraction digit, this many of them before `scale`.
    Fraction(u32),
}

/// What the digits so far say about those that may follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    position: Position,
    /// The digits compared with as many of the lower bound's. `Greater` also if they are equal and
    /// only zeros follow in the bound.
    low: Ordering,
    /// The digits compared with as many of the upper bound's; `Less` if there is none.
    high: Ordering,
    /// The number of the digits so far, modulo the least modulus that matters here.
    residue: BigUint,
}

/// A progression with the states that were reached so far.
///
/// It is saved as how its states were first reached, so that any saved table which loads is sound.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(into = "Saved", try_from = "Saved")]
pub(super) struct Table {
    spec: Progression,
    low: Digits,
    high: Option<Digits>,
    /// The part of the step that is prime to ten.
    odd: BigUint,
    /// The least exponent for which the rest of the step divides that power of ten.
    smooth: u32,
    states: Vec<State>,
    /// How each state but the start was first reached: from which state, by which byte.
    origins: Vec<(u32, u8)>,
    /// The first state reached of each class of states with one language.
    ids: HashMap<Class, u32, foldhash::fast::RandomState>,
}

/// What tells the language of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Class {
    position: Position,
    low: Ordering,
    high: Ordering,
    residue: BigUint,
    /// For each number of following digits too small for the residue to tell: the least number of
    /// that many digits which completes a multiple.
    completions: Vec<Option<BigUint>>,
}

/// The decimal digits of a bound.
#[derive(Clone, Debug)]
struct Digits {
    value: BigUint,
    /// Integer digits (at least one), then the fraction digits of the scale.
    digits: Vec<u8>,
    integer: u32,
    /// The position from which all digits are zero.
    zeros_from: usize,
}

impl Digits {
    fn new(value: &BigUint, scale: u32) -> Self {
        let least = scale as usize + 1;
        let mut digits = value.to_radix_be(10);
        if digits.len() < least {
            digits.splice(0..0, std::iter::repeat_n(0, least - digits.len()));
        }
        let zeros_from = digits.iter().rposition(|&d| d != 0).map_or(0, |last| last + 1);
        let integer = u32::try_from(digits.len() - scale as usize).unwrap_or(u32::MAX);
        Self { value: value.clone(), digits, integer, zeros_from }
    }

    /// Compares a text whose first `at` digits compare as `before` after one more digit.
    fn compare(&self, before: Ordering, at: usize, digit: u8) -> Ordering {
        before.then_with(|| self.digits.get(at).map_or(Ordering::Greater, |own| digit.cmp(own)))
    }
}

fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10_u8).pow(exponent)
}

/// Returns whether `base` and some number from `first` to `last` add up to a multiple of `step`.
fn hits(base: BigUint, first: BigUint, last: BigUint, step: &BigUint) -> bool {
    let rest = (base + &first) % step;
    let least = if rest == BigUint::ZERO { first } else { first + (step - rest) };
    least <= last
}

/// Returns the greatest common divisor.
pub(crate) fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != BigUint::ZERO {
        let rest = &a % &b;
        a = b;
        b = rest;
    }
    a
}

impl Progression {
    /// Returns whether the fields are as their documentation asks and at most 9,000 digits long.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        // A digit is 3.32 bits.
        let few_digits = |value: &BigUint| value.bits() <= u64::from(MAX_DIGITS) * 332 / 100;
        let member = |value: &BigUint| few_digits(value) && value % &self.step == BigUint::ZERO;
        self.scale <= MAX_DIGITS
            && (self.fraction || self.scale == 0)
            && self.step != BigUint::ZERO
            && few_digits(&self.step)
            && member(&self.low)
            && self.high.as_ref().is_none_or(|high| high >= &self.low && member(high))
    }
}

/// What is saved of a [`Table`].
#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    spec: Progression,
    origins: Vec<(u32, u8)>,
}

impl From<Table> for Saved {
    fn from(table: Table) -> Self {
        Self { spec: table.spec, origins: table.origins }
    }
}

impl TryFrom<Saved> for Table {
    type Error = &'static str;

    fn try_from(saved: Saved) -> Result<Self, Self::Error> {
        if !saved.spec.is_valid() {
            return Err("an arithmetic progression has no member");
        }
        let mut table = Self::new(saved.spec);
        for (from, byte) in saved.origins {
            let known = table.states.len();
            let state = table.states.get(from as usize).ok_or("a state precedes its origin")?;
            let modulus = table.modulus_after(state.position);
            let next = table.next(state, byte, &modulus).ok_or("a state is not reachable")?;
            table.intern(next, (from, byte));
            if table.states.len() == known {
                return Err("a state is there twice");
            }
        }
        Ok(table)
    }
}

impl Table {
    /// Prepares a valid progression. Its first state is the start.
    pub(super) fn new(spec: Progression) -> Self {
        let ten = BigUint::from(10_u8);
        let (mut odd, mut smooth) = (spec.step.clone(), 0);
        loop {
            let common = gcd(&odd, &ten);
            if common == BigUint::from(1_u8) {
                break;
            }
            odd /= common;
            smooth += 1;
        }
        let mut table = Self {
            low: Digits::new(&spec.low, spec.scale),
            high: spec.high.as_ref().map(|high| Digits::new(high, spec.scale)),
            odd,
            smooth,
            states: Vec::new(),
            origins: Vec::new(),
            ids: HashMap::default(),
            spec,
        };
        let high = if table.high.is_some() { Ordering::Equal } else { Ordering::Less };
        let low = if table.low.zeros_from == 0 { Ordering::Greater } else { Ordering::Equal };
        let start = State { position: Position::Start, low, high, residue: BigUint::ZERO };
        table.ids.insert(table.class(&start), 0);
        table.states.push(start);
        table
    }

    /// Returns what the table was made for.
    pub(super) const fn spec(&self) -> &Progression {
        &self.spec
    }

    /// Returns the number of states that were reached so far.
    pub(super) const fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns whether the text may end in `state`.
    pub(super) fn is_accepting(&self, state: u32) -> bool {
        let state = &self.states[state as usize];
        let length = match state.position {
            Position::Start | Position::Point => return false,
            Position::Zero => 1,
            Position::Integer(length) => length,
            Position::Fraction(_) => return state.residue == BigUint::ZERO && self.inside(state),
        };
        let at_point = self.at_point(state, length);
        state.residue == BigUint::ZERO && at_point.is_some_and(|state| self.inside(&state))
    }

    /// Returns whether a complete number that compares like this lies inside the bounds.
    fn inside(&self, state: &State) -> bool {
        state.low == Ordering::Greater && state.high != Ordering::Greater
    }

    /// Returns the state when `length` integer digits are all there are.
    fn at_point(&self, state: &State, length: u32) -> Option<State> {
        let low = length.cmp(&self.low.integer).then(state.low);
        let high = match &self.high {
            Some(high) => length.cmp(&high.integer).then(state.high),
            None => Ordering::Less,
        };
        let residue = state.residue.clone();
        (low != Ordering::Less && high != Ordering::Greater).then_some(State {
            position: Position::Point,
            low,
            high,
            residue,
        })
    }

    /// Returns the ways on, each with a set of bytes that no other has; all lead to live states.
    pub(super) fn transitions(&mut self, state: u32) -> Vec<(ByteSet, u32)> {
        let from = self.states[state as usize].clone();
        let modulus = self.modulus_after(from.position);
        let mut result: Vec<(ByteSet, u32)> = Vec::new();
        for byte in *b"0123456789." {
            let Some(next) = self.next(&from, byte, &modulus) else { continue };
            let next = self.intern(next, (state, byte));
            match result.iter_mut().find(|(_, other)| *other == next) {
                Some((bytes, _)) => bytes.insert(byte),
                None => result.push((ByteSet::single(byte), next)),
            }
        }
        result
    }

    /// Returns the state after `byte`, if it is live.
    fn next(&self, from: &State, byte: u8, modulus: &BigUint) -> Option<State> {
        let next = match (byte, from.position) {
            (b'0'..=b'9', _) => self.after_digit(from, byte - b'0', modulus),
            (b'.', Position::Zero) if self.spec.fraction => self.at_point(from, 1),
            (b'.', Position::Integer(length)) if self.spec.fraction => self.at_point(from, length),
            _ => None,
        };
        next.filter(|next| self.is_live(next))
    }

    /// Returns the least modulus that tells multiples once a digit after `position` was read.
    fn modulus_after(&self, position: Position) -> BigUint {
        let following = match position {
            Position::Start | Position::Zero | Position::Integer(_) => self.spec.scale,
            Position::Point => self.spec.scale.saturating_sub(1),
            Position::Fraction(done) => self.spec.scale.saturating_sub(done + 1),
        };
        &self.spec.step / gcd(&self.spec.step, &power_of_ten(following))
    }

    fn after_digit(&self, from: &State, digit: u8, modulus: &BigUint) -> Option<State> {
        let scale = self.spec.scale;
        let (position, at_low, at_high) = match from.position {
            Position::Start if digit == 0 => (Position::Zero, 0, 0),
            Position::Start => (Position::Integer(1), 0, 0),
            Position::Zero => return None,
            Position::Integer(length) => {
                let at = length as usize;
                (Position::Integer(length.saturating_add(1)), at, at)
            }
            Position::Point | Position::Fraction(_) => {
                let done = if let Position::Fraction(done) = from.position { done } else { 0 };
                if done == scale {
                    // Past the digits that count.
                    let position = Position::Fraction(scale);
                    return (digit == 0).then(|| State { position, ..from.clone() });
                }
                let at = |bound: &Digits| (bound.integer + done) as usize;
                (Position::Fraction(done + 1), at(&self.low), self.high.as_ref().map_or(0, at))
            }
        };
        let mut low = self.low.compare(from.low, at_low, digit);
        if low == Ordering::Equal && at_low + 1 >= self.low.zeros_from {
            low = Ordering::Greater;
        }
        let high = match &self.high {
            Some(high) => high.compare(from.high, at_high, digit),
            None => Ordering::Less,
        };
        let residue = (&from.residue * 10_u8 + digit) % modulus;
        Some(self.capped(State { position, low, high, residue }))
    }

    /// Forgets what no longer matters.
    fn capped(&self, mut state: State) -> State {
        if let Position::Integer(length) = state.position {
            if length > self.low.integer {
                state.low = Ordering::Greater;
            }
            if self.high.is_none() && length >= self.low.integer && state.low == Ordering::Greater {
                state.position = Position::Integer(self.low.integer.saturating_add(1));
            }
        }
        state
    }

    /// Returns whether some text leads from `state` to a member.
    fn is_live(&self, state: &State) -> bool {
        let (least, longest) = match state.position {
            // Not asked for: a valid progression has a member.
            Position::Start => return true,
            Position::Zero => {
                let point = self.at_point(state, 1);
                return point.is_some_and(|point| self.is_live(&point));
            }
            Position::Point => return self.completes(state, self.spec.scale, 0),
            Position::Fraction(done) => return self.completes(state, self.spec.scale - done, 0),
            Position::Integer(length) => {
                // With enough digits more there is always a multiple.
                let Some(high) = &self.high else { return true };
                (length, high.integer)
            }
        };
        // A length strictly between those of the bounds leaves the following digits free, and one
        // more free digit never loses a multiple. So three lengths decide.
        let mut lengths = [self.low.integer, longest.saturating_sub(1), longest];
        lengths.sort_unstable();
        lengths.iter().filter(|&&length| length >= least).any(|&length| {
            self.at_point(state, length)
                .is_some_and(|point| self.completes(&point, self.spec.scale + length - least, 0))
        })
    }

    /// Returns whether a multiple inside the bounds continues `state`, whose length is settled, with
    /// exactly `count` digits, the last `zeros` of them zero.
    fn completes(&self, state: &State, count: u32, zeros: u32) -> bool {
        let power = power_of_ten(count);
        let first = match state.low {
            Ordering::Less => return false,
            Ordering::Equal => &self.low.value % &power,
            Ordering::Greater => BigUint::ZERO,
        };
        let last = match (state.high, &self.high) {
            (Ordering::Greater, _) => return false,
            (Ordering::Equal, Some(high)) => &high.value % &power,
            _ => &power - 1_u8,
        };
        if zeros == 0 {
            return hits(&state.residue * &power, first, last, &self.spec.step);
        }
        // Everything in units of the last digit that is written.
        let unit = power_of_ten(zeros);
        let step = &self.spec.step / gcd(&self.spec.step, &unit);
        let first = (first + &unit - 1_u8) / &unit;
        hits(&state.residue * (power / &unit), first, last / unit, &step)
    }

    /// Returns the least number of bytes that lead from `state` to a member.
    pub(super) fn least(&self, state: u32) -> u32 {
        let state = &self.states[state as usize];
        if state.position != Position::Start {
            return self.least_after(state);
        }
        let modulus = self.modulus_after(state.position);
        let digits = b"0123456789".iter().filter_map(|&byte| self.next(state, byte, &modulus));
        digits.map(|next| 1 + self.least_after(&next)).min().unwrap_or(u32::MAX)
    }

    fn least_after(&self, state: &State) -> u32 {
        let scale = self.spec.scale;
        let (length, longest) = match state.position {
            Position::Point => {
                return self.least_fraction(state, scale).map_or(u32::MAX, |digits| digits.max(1));
            }
            Position::Fraction(done) => {
                return self.least_fraction(state, scale - done).unwrap_or(u32::MAX);
            }
            Position::Start | Position::Zero => (1, 1),
            Position::Integer(length) => (length, u32::MAX),
        };
        let mut best = u32::MAX;
        for more in 0..=longest - length {
            if more >= best || self.high.as_ref().is_some_and(|high| length + more > high.integer) {
                break;
            }
            let Some(point) = self.at_point(state, length + more) else { continue };
            if let Some(digits) = self.least_fraction(&point, scale + more) {
                // The integer digits come first, then the point and what is left.
                let fraction = digits.saturating_sub(more);
                best = best.min(more + if fraction == 0 { 0 } else { 1 + fraction });
            }
        }
        best
    }

    /// Returns how many of `count` digits must be written at least, with zeros for the others.
    fn least_fraction(&self, state: &State, count: u32) -> Option<u32> {
        if !self.completes(state, count, 0) {
            return None;
        }
        // More digits never lose a multiple.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.completes(state, count, count - middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    fn intern(&mut self, state: State, origin: (u32, u8)) -> u32 {
        let class = self.class(&state);
        if let Some(&id) = self.ids.get(&class) {
            return id;
        }
        let id = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        self.states.push(state);
        self.origins.push(origin);
        self.ids.insert(class, id);
        id
    }

    /// Returns what tells the language of `state`. Once so many digits follow that the smooth part
    /// of the step divides their power of ten, only the residue by the odd part matters; for fewer
    /// digits it matters which of them complete a multiple.
    fn class(&self, state: &State) -> Class {
        let mut residue = state.residue.clone();
        let mut completions = Vec::new();
        let few = self.smooth.saturating_sub(self.spec.scale) <= MERGED_DIGITS;
        if few && matches!(state.position, Position::Integer(_)) {
            for digits in self.spec.scale..self.smooth {
                let power = power_of_ten(digits);
                let rest = &state.residue * &power % &self.spec.step;
                let least = if rest == BigUint::ZERO { rest } else { &self.spec.step - rest };
                completions.push((least < power).then_some(least));
            }
            residue %= &self.odd;
        }
        Class { position: state.position, low: state.low, high: state.high, residue, completions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(step: u64, scale: u32, low: u64, high: Option<u64>) -> Progression {
        let [step, low] = [step, low].map(BigUint::from);
        Progression { step, scale, low, high: high.map(BigUint::from), fraction: scale > 0 }
    }

    /// Makes every state.
    fn complete(spec: Progression) -> (Table, Vec<Vec<(ByteSet, u32)>>) {
        let mut table = Table::new(spec);
        let mut transitions = Vec::new();
        while transitions.len() < table.states.len() {
            transitions.push(table.transitions(u32::try_from(transitions.len()).unwrap()));
        }
        (table, transitions)
    }

    #[test]
    fn every_state_leads_to_a_member_in_the_stated_number_of_bytes() {
        for spec in [
            spec(7, 0, 0, None),
            spec(7, 0, 21, Some(7_000)),
            spec(97, 0, 9_700, Some(19_400)),
            spec(5_000, 0, 5_000, Some(1_000_000)),
            spec(25, 2, 75, Some(12_350)),
            spec(33, 3, 0, Some(999_999)),
            spec(64, 0, 128, None),
            spec(1, 3, 5, None),
            spec(15, 1, 15, Some(300)),
            spec(1_001, 2, 0, None),
            Progression { fraction: true, ..spec(6, 0, 12, Some(996)) },
        ] {
            let (table, transitions) = complete(spec.clone());
            let states = 0..u32::try_from(table.states.len()).unwrap();
            let end = |state| if table.is_accepting(state) { 0 } else { u32::MAX };
            let mut least: Vec<u32> = states.clone().map(end).collect();
            for _ in states.clone() {
                for (state, next) in transitions.iter().enumerate() {
                    let ways = next.iter().map(|&(_, next)| least[next as usize].saturating_add(1));
                    least[state] = ways.chain([least[state]]).min().unwrap();
                }
            }
            assert!(!least.contains(&u32::MAX), "{spec:?}");
            let stated: Vec<u32> = states.map(|state| table.least(state)).collect();
            assert_eq!(stated, least, "{spec:?}");
        }
    }

    #[test]
    fn unbounded_steps_have_few_states() {
        // The start, a leading zero, and the classes of residues.
        for (step, states) in [(1, 3), (3, 5), (7, 9), (10, 4), (1_000, 6), (4, 5), (96, 32)] {
            let (table, _) = complete(spec(step, 0, 0, None));
            assert!(table.states.len() <= states, "{step}: {}", table.states.len());
        }
    }

    #[test]
    fn only_reached_states_of_a_long_progression_are_made() {
        let mut table = Table::new(spec(1_000_003, 0, 0, Some(1_000_003 * 999_997)));
        let mut state = 0;
        for byte in (1_000_003_u64 * 123_457).to_string().bytes() {
            let transitions = table.transitions(state);
            state = transitions.iter().find(|(bytes, _)| bytes.contains(byte)).unwrap().1;
        }
        assert!(table.is_accepting(state));
        assert!(table.states.len() < 200, "{}", table.states.len());
    }

    #[test]
    fn a_saved_table_loads_with_the_same_states() {
        let (table, transitions) = complete(spec(25, 2, 75, Some(12_350)));
        let bytes = postcard::to_stdvec(&table).unwrap();
        let mut loaded: Table = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(loaded.states, table.states);
        for (state, expected) in transitions.iter().enumerate() {
            assert_eq!(&loaded.transitions(u32::try_from(state).unwrap()), expected);
        }
    }

    #[test]
    fn a_forged_table_is_refused() {
        let table = Table::new(spec(25, 2, 75, None));
        let forged = [
            Saved { spec: spec(0, 0, 0, None), origins: vec![] },
            Saved { spec: spec(5, 0, 7, None), origins: vec![] },
            Saved { spec: spec(5, 0, 10, Some(5)), origins: vec![] },
            Saved { spec: Progression { scale: u32::MAX, ..table.spec.clone() }, origins: vec![] },
            Saved { spec: table.spec.clone(), origins: vec![(1, b'1')] },
            Saved { spec: table.spec.clone(), origins: vec![(0, b'.')] },
            Saved { spec: table.spec.clone(), origins: vec![(0, b'1'), (0, b'1')] },
        ];
        for saved in forged {
            let bytes = postcard::to_stdvec(&saved).unwrap();
            assert!(postcard::from_bytes::<Table>(&bytes).is_err());
        }
    }
}
