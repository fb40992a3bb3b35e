//! Rates of calls: `60/min`, or `10/min, 100/h`.
//!
//! A rate is a token bucket that starts full and refills evenly: with `60/min`, 60 calls may come
//! at once, and then one per second. Counting is a pure function of the spent amount and the time,
//! so that counts can be stored anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};

/// Combined rates. A call passes, and is counted, only if all of them allow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rates(BTreeMap<Period, NonZeroU32>);

/// A number of calls per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of calls.
    pub calls: NonZeroU32,
    /// The period.
    pub period: Period,
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Period {
    /// A second.
    #[serde(rename = "s")]
    Second,
    /// A minute.
    #[serde(rename = "min")]
    Minute,
    /// An hour.
    #[serde(rename = "h")]
    Hour,
    /// A day of 24 hours.
    #[serde(rename = "d")]
    Day,
}

/// The spent part of rates: for each period the time at which its bucket is full again, in
/// nanoseconds since 1970. Empty: nothing is spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateUse(BTreeMap<Period, u64>);

/// A rate is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// The exhausted rate. If several are, the one that takes longest to allow a call.
    pub rate: Rate,
    /// The time until all rates allow a call again.
    pub retry_after: Duration,
}

/// The error for a string that is not a list of rates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a rate: {reason}; write calls per period, such as `60/min` or `10/min, 100/h`",
    shown(text)
)]
pub struct ParseRatesError {
    /// The invalid string.
    pub text: String,
    /// The problem.
    pub reason: &'static str,
}

impl Rates {
    /// The highest number of calls per period. The interval between calls is rounded down to
    /// nanoseconds, so with a much higher limit one extra call per second could pass.
    pub const MOST_CALLS: u32 = 10_000;

    /// Iterates over the rates, shortest period first.
    pub fn iter(&self) -> impl Iterator<Item = Rate> {
        self.0.iter().map(|(period, calls)| Rate { calls: *calls, period: *period })
    }

    /// Counts one call if all rates allow it. `now` is in nanoseconds since 1970.
    ///
    /// If the clock was set back, a call waits for at most one period.
    ///
    /// # Errors
    ///
    /// [`RateExceeded`] if a rate does not allow the call now.
    pub fn take(&self, spent: &mut RateUse, now: u64) -> Result<(), RateExceeded> {
        let mut after = BTreeMap::new();
        let mut used_up: Option<RateExceeded> = None;
        for rate in self.iter() {
            let (period, interval) = (rate.period.nanos(), rate.interval());
            let free_at = spent.0.get(&rate.period).copied().unwrap_or(0);
            let free_at = free_at.clamp(now, now.saturating_add(period)).saturating_add(interval);
            let over = (free_at - now).saturating_sub(period);
            if over > 0 {
                let retry_after = Duration::from_nanos(over);
                if used_up.is_none_or(|other| other.retry_after < retry_after) {
                    used_up = Some(RateExceeded { rate, retry_after });
                }
            }
            after.insert(rate.period, free_at);
        }
        match used_up {
            Some(used_up) => Err(used_up),
            None => {
                spent.0 = after;
                Ok(())
            }
        }
    }

    /// Combines the rates with others. The lower rate applies for each period.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let mut rates = self.0.clone();
        for (period, calls) in &others.0 {
            let own = rates.entry(*period).or_insert(*calls);
            *own = (*own).min(*calls);
        }
        Self(rates)
    }
}

impl Rate {
    /// Returns the time after which one more call is possible, in nanoseconds.
    fn interval(self) -> u64 {
        self.period.nanos() / u64::from(self.calls.get())
    }
}

impl Period {
    const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// Returns the unit: `s`, `min`, `h` or `d`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "d",
        }
    }

    const fn nanos(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
        };
        seconds * 1_000_000_000
    }
}

impl RateUse {
    /// Returns true if nothing is spent, so that the value need not be stored.
    pub fn is_over(&self, now: u64) -> bool {
        self.0.values().all(|free_at| *free_at <= now)
    }

    /// Returns the time at which nothing is spent, in nanoseconds since 1970.
    pub fn over_at(&self) -> u64 {
        self.0.values().copied().max().unwrap_or(0)
    }
}

impl FromStr for Rates {
    type Err = ParseRatesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |reason| ParseRatesError { text: text.to_owned(), reason };
        let mut rates = BTreeMap::new();
        for rate in text.split(',') {
            let (calls, period) =
                rate.trim().split_once('/').ok_or_else(|| refused("`/` is missing"))?;
            let is_number = !calls.is_empty() && calls.bytes().all(|byte| byte.is_ascii_digit());
            let calls = calls.parse().ok().filter(|calls| is_number && *calls <= Self::MOST_CALLS);
            let calls = calls.and_then(NonZeroU32::new);
            let calls = calls.ok_or_else(|| refused("the number must be from 1 to 10000"))?;
            let period = Period::ALL.into_iter().find(|known| known.as_str() == period);
            let period =
                period.ok_or_else(|| refused("the unit must be `s`, `min`, `h` or `d`"))?;
            if rates.insert(period, calls).is_some() {
                return Err(refused("a unit is repeated"));
            }
        }
        Ok(Self(rates))
    }
}

impl TryFrom<String> for Rates {
    type Error = ParseRatesError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Rates> for String {
    fn from(rates: Rates) -> Self {
        rates.to_string()
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rate) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            rate.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.calls, self.period.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_700_000_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn rates(text: &str) -> Rates {
        text.parse().unwrap()
    }

    /// Returns how many calls pass at once.
    fn taken(rates: &Rates, spent: &mut RateUse, now: u64) -> usize {
        (0..20_000).take_while(|_| rates.take(spent, now).is_ok()).count()
    }

    #[test]
    fn formatted_rates_are_parsed_back() {
        let check = |text: &str, expected: &str| assert_eq!(rates(text).to_string(), expected);
        check("60/min", "60/min");
        check("100/h,10/min", "10/min, 100/h");
        check(" 1/s , 2/min , 3/h , 10000/d ", "1/s, 2/min, 3/h, 10000/d");
        check("007/d", "7/d");
    }

    #[test]
    fn invalid_rates_are_refused() {
        let check = |text: &str, reason: &str| {
            let error = text.parse::<Rates>().unwrap_err();
            assert_eq!((error.reason, error.text.as_str()), (reason, text), "{text}");
        };
        check("", "`/` is missing");
        check("60", "`/` is missing");
        check("60/min,", "`/` is missing");
        check("60 / min", "the number must be from 1 to 10000");
        check("0/min", "the number must be from 1 to 10000");
        check("+1/min", "the number must be from 1 to 10000");
        check("-1/min", "the number must be from 1 to 10000");
        check("1.5/min", "the number must be from 1 to 10000");
        check("10001/min", "the number must be from 1 to 10000");
        check("99999999999/min", "the number must be from 1 to 10000");
        check("/min", "the number must be from 1 to 10000");
        check("60/minute", "the unit must be `s`, `min`, `h` or `d`");
        check("60/Min", "the unit must be `s`, `min`, `h` or `d`");
        check("60/", "the unit must be `s`, `min`, `h` or `d`");
        check("1/s, 2/s", "a unit is repeated");
    }

    #[test]
    fn bursts_pass_and_then_single_calls() {
        let (rates, mut spent) = (rates("60/min"), RateUse::default());
        assert_eq!(taken(&rates, &mut spent, START), 60);
        let used_up = rates.take(&mut spent, START).unwrap_err();
        assert_eq!(used_up.retry_after, Duration::from_secs(1));
        assert_eq!(taken(&rates, &mut spent, START + SECOND - 1), 0);
        assert_eq!(taken(&rates, &mut spent, START + SECOND), 1);
        assert_eq!(taken(&rates, &mut spent, START + 3600 * SECOND), 60);
    }

    #[test]
    fn refused_calls_are_not_counted() {
        let (rates, mut spent) = (rates("2/s, 3/h"), RateUse::default());
        assert_eq!(taken(&rates, &mut spent, START), 2);
        let before = spent.clone();
        let used_up = rates.take(&mut spent, START).unwrap_err();
        assert_eq!((used_up.rate.to_string(), &spent), ("2/s".into(), &before));
        assert_eq!(taken(&rates, &mut spent, START + 10 * SECOND), 1);
        let used_up = rates.take(&mut spent, START + 10 * SECOND).unwrap_err();
        assert_eq!(used_up.rate.to_string(), "3/h");
        assert_eq!(used_up.retry_after, Duration::from_secs(20 * 60 - 10));
    }

    #[test]
    fn the_highest_rate_is_exact() {
        for text in ["10000/s", "10000/d", "7/s", "9999/min"] {
            let rates = rates(text);
            let most = rates.iter().next().unwrap().calls.get() as usize;
            assert_eq!(taken(&rates, &mut RateUse::default(), START), most, "{text}");
        }
    }

    #[test]
    fn clocks_set_back_refuse_for_one_period() {
        let (rates, mut spent) = (rates("1/min"), RateUse::default());
        rates.take(&mut spent, START).unwrap();
        let earlier = START - 1000 * 60 * SECOND;
        let used_up = rates.take(&mut spent, earlier).unwrap_err();
        assert_eq!(used_up.retry_after, Duration::from_secs(60));
        // The extreme times that can be stored.
        rates.take(&mut spent, u64::MAX).unwrap_or(());
        rates.take(&mut spent, 0).unwrap_or(());
    }

    #[test]
    fn the_lower_rate_applies_per_period() {
        let user = rates("60/min, 100/h");
        assert_eq!(user.and(&rates("10/min, 5/s")).to_string(), "5/s, 10/min, 100/h");
        assert_eq!(user.and(&rates("90/min")).to_string(), "60/min, 100/h");
    }

    #[test]
    fn expired_counts_are_over() {
        let (rates, mut spent) = (rates("2/s"), RateUse::default());
        assert!(spent.is_over(START));
        rates.take(&mut spent, START).unwrap();
        assert!(!spent.is_over(START + SECOND / 2 - 1));
        assert!(spent.is_over(START + SECOND / 2));
        assert_eq!(spent.over_at(), START + SECOND / 2);
    }

    #[test]
    fn counts_are_stored_as_text() {
        let (rates, mut spent) = (rates("2/s, 3/h"), RateUse::default());
        rates.take(&mut spent, START).unwrap();
        let text = serde_json::to_string(&spent).unwrap();
        assert_eq!(text, r#"{"s":1700000000500000000,"h":1700001200000000000}"#);
        assert_eq!(serde_json::from_str::<RateUse>(&text).unwrap(), spent);
    }

    proptest! {
        /// Compared with a plain model: a bucket that is filled in steps of one interval.
        #[test]
        fn rates_match_the_bucket_model(
            calls in 1_u32..20,
            waits in prop::collection::vec(0_u64..40, 1..200),
        ) {
            let rates = rates(&format!("{calls}/min"));
            let interval = 60 * SECOND / u64::from(calls);
            let mut spent = RateUse::default();
            let mut now = START;
            let (mut passed, mut refused_for) = (Vec::new(), None);
            for wait in waits {
                now += wait * interval / 10;
                match rates.take(&mut spent, now) {
                    Ok(()) => {
                        prop_assert!(refused_for.is_none_or(|until| until <= now));
                        passed.push(now);
                        refused_for = None;
                    }
                    Err(RateExceeded { retry_after, .. }) => {
                        let until = now + u64::try_from(retry_after.as_nanos()).unwrap();
                        prop_assert!(refused_for.is_none_or(|earlier| earlier == until));
                        refused_for = Some(until);
                    }
                }
                // In any period, no more calls pass than the bucket contained and received.
                for (index, since) in passed.iter().enumerate() {
                    let filled = (now - since) / interval;
                    prop_assert!((passed.len() - index) as u64 <= u64::from(calls) + filled);
                }
            }
        }
    }
}
