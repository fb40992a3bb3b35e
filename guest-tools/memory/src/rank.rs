//! Ranking by BM25: the weight of a word grows as fewer documents contain it, and with its frequency
//! relative to the length of the text.
//!
//! Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
//! with a weight that is never negative.

use crate::words::{each_word, weight};

/// How quickly further occurrences lose weight.
const K1: f32 = 1.2;

/// The influence of the length of a text.
const B: f32 = 0.75;

/// The ranked documents. Only those with a word of the query are kept.
pub(crate) struct Ranking<'a, T> {
    asked: &'a [String],
    texts: usize,
    words: usize,
    found: Vec<Found<T>>,
}

/// A text with a word of the query.
struct Found<T> {
    text: T,
    words: usize,
    /// The frequency of each word of the query.
    counts: Box<[f32]>,
}

impl<'a, T: Ord> Ranking<'a, T> {
    /// Creates a ranking for the words of a query.
    pub(crate) fn new(asked: &'a [String]) -> Self {
        Self { asked, texts: 0, words: 0, found: Vec::new() }
    }

    /// Adds a text, in parts. `text` identifies it.
    pub(crate) fn add<'b>(&mut self, text: T, parts: impl Iterator<Item = &'b str>) {
        let (mut counts, mut words) = (None::<Box<[f32]>>, 0);
        for part in parts {
            each_word(part, |word| {
                words += 1;
                for (index, asked) in self.asked.iter().enumerate() {
                    let weight = weight(word, asked);
                    if weight > 0.0 {
                        let none = || vec![0.0; self.asked.len()].into();
                        counts.get_or_insert_with(none)[index] += weight;
                    }
                }
            });
        }
        self.texts += 1;
        self.words += words;
        self.found.extend(counts.map(|counts| Found { text, words, counts }));
    }

    /// Returns the documents with a word of the query, best first; for equal ranks, the greatest first.
    pub(crate) fn best(self) -> Vec<T> {
        let average = (self.words as f32 / self.texts.max(1) as f32).max(1.0);
        let rarity: Vec<f32> = (0..self.asked.len())
            .map(|word| {
                let having = self.found.iter().filter(|text| text.counts[word] > 0.0).count();
                ((self.texts - having) as f32 + 0.5).mul_add(1.0 / (having as f32 + 0.5), 1.0).ln()
            })
            .collect();
        let score = |text: &Found<T>| -> f32 {
            let length = 1.0 - B + B * text.words as f32 / average;
            let of_word =
                |(count, rarity): (&f32, &f32)| rarity * count * (K1 + 1.0) / (count + K1 * length);
            text.counts.iter().zip(&rarity).map(of_word).sum()
        };
        let mut scored: Vec<_> =
            self.found.into_iter().map(|text| (score(&text), text.text)).collect();
        scored.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| other.cmp(one)));
        scored.into_iter().map(|(_, text)| text).collect()
    }
}

/// Returns the line of a text with most of the words; the first one if several have equally many.
pub(crate) fn best_line<'a>(text: &'a str, asked: &[String]) -> Option<&'a str> {
    let points = |line: &str| {
        let mut best = vec![0.0_f32; asked.len()];
        each_word(line, |word| {
            for (best, asked) in best.iter_mut().zip(asked) {
                *best = best.max(weight(word, asked));
            }
        });
        best.into_iter().sum::<f32>()
    };
    let lines = text.lines().map(|line| (points(line), line)).rev();
    let best = lines.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(points, _)| *points > 0.0).map(|(_, line)| line)
}
