//! Which policy to take, in words, from the figures alone.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use super::{Figures, Results, TraceResults, results::points};
use crate::figures::{grouped, seconds};

/// Points of the prompt tokens below which two policies are taken for equal: another hour of the same traffic differs by more.
const EQUAL_POINTS: f64 = 0.1;
/// Points that fewer writes may cost to be worth a word.
const WORTH_POINTS: f64 = 1.0;

/// What to say about one trace.
pub struct Advice<'a> {
    results: &'a Results,
    trace: &'a TraceResults,
    whole: u64,
}

/// The policy to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Index of the policy.
    pub policy: usize,
    /// How far it is behind the best of a budget at most, in points.
    pub worst_points: f64,
}

impl<'a> Advice<'a> {
    /// About `trace`.
    pub fn new(results: &'a Results, trace: &'a TraceResults) -> Self {
        Self { results, trace, whole: trace.whole_tokens() }
    }

    /// How far a policy is behind the best at a budget, in points; `None` if it failed there.
    fn behind(&self, policy: usize, size: usize) -> Option<f64> {
        let gained = self.trace.figures(policy, size)?.gained_tokens();
        Some(points(self.trace.best_gain(size)? - gained, self.whole))
    }

    /// Its largest arrears over all budgets; `None` if it failed at one.
    fn worst(&self, policy: usize) -> Option<f64> {
        (0..self.trace.sizes.len())
            .map(|size| self.behind(policy, size))
            .try_fold(0.0, |worst: f64, behind| Some(worst.max(behind?)))
    }

    fn written(&self, policy: usize) -> u64 {
        let written = |size| self.trace.figures(policy, size).and_then(Figures::written).unwrap_or(0);
        (0..self.trace.sizes.len()).map(written).sum()
    }

    /// The policy to take for this trace, if one has figures at every budget: of those whose largest arrears are the least of all, to within
    /// 0.1 points, the one that writes least.
    pub fn choice(&self) -> Option<Choice> {
        let all = self.trace.online().filter_map(|policy| Some(Choice { policy, worst_points: self.worst(policy)? }));
        let least = all.clone().map(|choice| choice.worst_points).fold(f64::INFINITY, f64::min);
        all.filter(|choice| choice.worst_points <= least + EQUAL_POINTS).min_by(|a, b| {
            let written = |choice: &Choice| self.written(choice.policy);
            written(a).cmp(&written(b)).then(a.worst_points.total_cmp(&b.worst_points)).then(a.policy.cmp(&b.policy))
        })
    }

    /// All there is to say, a sentence or two each.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        match self.choice() {
            None => sentences.push("No policy has figures at every budget: there is none to recommend.".to_owned()),
            Some(choice) => {
                sentences.push(self.recommend(choice));
                sentences.extend(self.ranking());
                sentences.extend(self.cost(choice));
                sentences.extend(self.fewer_writes(choice));
                sentences.extend(self.room(choice));
                sentences.extend(self.time(choice));
            }
        }
        sentences.extend(self.underfilled());
        sentences.extend(self.helped());
        sentences.extend(self.trace.failures(self.results));
        sentences
    }

    fn name(&self, policy: usize) -> &str {
        &self.trace.policies[policy]
    }

    fn size(&self, size: usize) -> String {
        let size = self.results.size(self.trace.sizes[size]);
        if self.results.untyped { format!("{size} blocks") } else { size }
    }

    fn recommend(&self, choice: Choice) -> String {
        let name = self.name(choice.policy);
        let alone = self.trace.online().count() == 1;
        let mut text = match choice.worst_points {
            _ if alone => format!("{name} is the only policy compared."),
            0.0 => format!("Take {name}: no other gains more at any of these budgets."),
            worst if worst < EQUAL_POINTS => {
                format!(
                    "Take {name}: at every budget it is within {EQUAL_POINTS} points of the best, which is no difference to go by."
                )
            }
            worst => {
                format!("Take {name}: over these budgets it is never more than {worst:.2} points behind the best.")
            }
        };
        let equals: Vec<usize> = self.trace.online().filter(|&other| self.is_equal(choice.policy, other)).collect();
        if !equals.is_empty() {
            let names: Vec<&str> = equals.iter().map(|&policy| self.name(policy)).collect();
            let written = self.written(choice.policy);
            let least = match equals.iter().all(|&policy| written < self.written(policy)) {
                true => format!("; {name} writes least of them"),
                false => String::new(),
            };
            let verb = if names.len() == 1 { "is" } else { "are" };
            text += &format!(" {} {verb} within {EQUAL_POINTS} points of it everywhere{least}.", listed(&names));
        }
        text
    }

    /// Policies that are level with the best of a budget.
    fn level(&self, size: usize) -> Vec<usize> {
        let level = |&policy: &usize| self.behind(policy, size).is_some_and(|behind| behind < EQUAL_POINTS);
        self.trace.online().filter(level).collect()
    }

    /// How far those that are level with the best of a budget are ahead of all others; `None` if there are no others.
    fn lead(&self, size: usize) -> Option<f64> {
        let level = self.level(size);
        let others = self.trace.online().filter(|policy| !level.contains(policy));
        others.filter_map(|policy| self.behind(policy, size)).min_by(f64::total_cmp)
    }

    /// Whether another policy gains as much at every budget, as far as can be told.
    fn is_equal(&self, policy: usize, other: usize) -> bool {
        let gained = |policy: usize, size: usize| {
            self.trace.figures(policy, size).map(|figures| points(figures.gained_tokens(), self.whole))
        };
        let level =
            |size| gained(policy, size).zip(gained(other, size)).is_some_and(|(a, b)| (a - b).abs() < EQUAL_POINTS);
        policy != other && (0..self.trace.sizes.len()).all(level)
    }

    /// Who is ahead where.
    fn ranking(&self) -> Option<String> {
        if self.trace.online().count() < 2 {
            return None;
        }
        // Budgets in a row with the same policies ahead: these, the first and the last.
        let mut runs: Vec<(Vec<usize>, usize, usize)> = Vec::new();
        for size in 0..self.trace.sizes.len() {
            let level = self.level(size);
            match runs.last_mut() {
                Some((ahead, _, last)) if *ahead == level => *last = size,
                _ => runs.push((level, size, size)),
            }
        }
        let parts: Vec<String> =
            runs.iter().filter_map(|(ahead, first, last)| self.ahead(ahead, *first, *last)).collect();
        match parts.as_slice() {
            [] => None,
            [one] => Some(format!("{}.", capital(one))),
            _ => Some(format!("The ranking changes with the budget: {}.", parts.join("; "))),
        }
    }

    /// That these are ahead from one budget to another, and by how much.
    fn ahead(&self, ahead: &[usize], first: usize, last: usize) -> Option<String> {
        let span = match first == last {
            true => format!("at {}", self.size(first)),
            false => format!("from {} to {}", self.size(first), self.size(last)),
        };
        let leads: Vec<(f64, usize)> = (first..=last).filter_map(|size| Some((self.lead(size)?, size))).collect();
        let Some(&(lead, at)) = leads.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
            let all = (first..=last).all(|size| self.level(size).len() == self.trace.online().count());
            return all.then(|| {
                format!("{span} all are within {EQUAL_POINTS} points, and the choice makes no difference in tokens")
            });
        };
        let names: Vec<&str> = ahead.iter().map(|&policy| self.name(policy)).collect();
        let verb = if names.len() == 1 { "leads" } else { "lead together" };
        let by = if first == last {
            format!("{lead:.2} points")
        } else {
            format!("up to {lead:.2} points at {}", self.size(at))
        };
        Some(format!("{span} {} {verb}, by {by}", listed(&names)))
    }

    /// What the choice writes, against the next in gain, at the budget where the policies differ most.
    fn cost(&self, choice: Choice) -> Option<String> {
        let size = self.trace.contested();
        let figures = self.trace.figures(choice.policy, size)?;
        let gained = |policy: usize| self.trace.figures(policy, size).map(Figures::gained_tokens);
        let next = self
            .trace
            .online()
            .filter(|&policy| policy != choice.policy && gained(policy).is_some())
            .max_by_key(|&policy| (gained(policy), Reverse(policy)));
        let tell = |policy: usize, figures: &Figures| {
            let written = figures.written().map(|written| format!(" and writes {}", self.results.amount(written)));
            let share = points(figures.gained_tokens(), self.whole);
            format!("{} gains {share:.2} %{}", self.name(policy), written.unwrap_or_default())
        };
        let mut text =
            format!("At {}, where the policies differ most, {}", self.size(size), tell(choice.policy, figures));
        if let Some(next) = next {
            text += &format!("; {}", tell(next, self.trace.figures(next, size)?));
        }
        Some(text + ".")
    }

    /// The largest share of writes that another policy spares for little.
    fn fewer_writes(&self, choice: Choice) -> Option<String> {
        let mut found: Option<(f64, f64, usize, usize)> = None;
        for size in 0..self.trace.sizes.len() {
            let own = self.trace.figures(choice.policy, size)?;
            let own_written = own.written().filter(|&written| written > 0)?;
            for policy in self.trace.online().filter(|&policy| policy != choice.policy) {
                let Some(other) = self.trace.figures(policy, size) else { continue };
                let lost = points(own.gained_tokens(), self.whole) - points(other.gained_tokens(), self.whole);
                let spared = 1.0 - other.written()? as f64 / own_written as f64;
                let better = found.is_none_or(|(most, ..)| spared > most);
                if lost <= WORTH_POINTS && spared >= 0.1 && better {
                    found = Some((spared, lost, policy, size));
                }
            }
        }
        let (spared, lost, policy, size) = found?;
        let lost = match format!("{:.2}", lost.abs()) {
            none if none == "0.00" => "and loses nothing".to_owned(),
            less if lost > 0.0 => format!("for {less} points less"),
            more => format!("and gains {more} points more"),
        };
        let name = self.name(policy);
        Some(format!(
            "If writes matter more: {name} writes {:.0} % less at {} {lost}.",
            (100.0 * spared).floor(),
            self.size(size)
        ))
    }

    /// How far from what is possible.
    fn room(&self, choice: Choice) -> Option<String> {
        let (ceiling, what) = (self.trace.ceiling(), self.trace.ceiling_name()?);
        let room = |size: usize| {
            let bound = ceiling[size]?;
            let gained = self.trace.figures(choice.policy, size)?.gained_tokens();
            Some((points(bound, self.whole), points(gained, self.whole), size))
        };
        let (bound, gained, size) =
            (0..self.trace.sizes.len()).filter_map(room).max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)))?;
        Some(format!(
            "Room is left most at {}: {what} is {bound:.2} %, {} gains {gained:.2} %.",
            self.size(size),
            self.name(choice.policy)
        ))
    }

    /// What it means in time and wear.
    fn time(&self, choice: Choice) -> Option<String> {
        let size = self.trace.contested();
        let score = self.trace.figures(choice.policy, size)?.score()?;
        let time = |ns: u64| seconds(ns as f64 / 1e9);
        let wear = score.drive_writes_per_day_milli(self.trace.sizes[size]).map_or(String::new(), |writes| {
            let times = if writes < 10_000 { format!("{:.2}", writes as f64 / 1e3) } else { grouped(writes / 1000) };
            format!(" At the pace of the trace a device of that size is overwritten {times} times a day.")
        });
        let slow = match score.load_ns > score.saved_prefill_ns() {
            true => " The loads take longer than the prefill they spare: see --planner min-time.",
            false => "",
        };
        Some(format!(
            "Modelled at {}: {} of prefill instead of {}, {} of loads.{slow}{wear}",
            self.size(size),
            time(score.prefill_ns),
            time(score.cold_prefill_ns),
            time(score.load_ns)
        ))
    }

    fn underfilled(&self) -> Option<String> {
        let cold: Vec<String> = (0..self.trace.sizes.len())
            .filter(|&size| {
                self.trace.online().any(|policy| self.trace.figures(policy, size).is_some_and(Figures::underfilled))
            })
            .map(|size| self.size(size))
            .collect();
        let names: Vec<&str> = cold.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "At {} a pool was not full before the measured half: those figures (cold) tell of a cold start, and kvcache-simulator \
                 gives 0 for them.",
                listed(&names)
            )
        })
    }

    /// Policies whose answers were filled up.
    fn helped(&self) -> Vec<String> {
        let helped = |policy: usize| -> u64 {
            let score = |size| self.trace.figures(policy, size)?.score().map(|score| score.host_evictions);
            (0..self.trace.sizes.len()).filter_map(score).sum()
        };
        self.trace
            .online()
            .filter(|&policy| helped(policy) > 0)
            .map(|policy| {
                format!(
                    "{} named too few victims {} times over all budgets: the cache's own LRU filled up.",
                    self.name(policy),
                    helped(policy)
                )
            })
            .collect()
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}
