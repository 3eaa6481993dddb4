//! Policies against one another: every trace under every policy at every budget, and what to make of it.
//!
//! [`run()`] replays a [`Grid`] on all cores and keeps what is finished in a [`Journal`]; [`Results`] puts the cells together; tables, CSV, JSON and
//! the report are made from that alone. No time of a clock is in them: the same inputs give the same bytes, however many threads there
//! were and however often the run was stopped.

mod advice;
pub mod bound;
mod contender;
mod csv;
mod figures;
mod grid;
mod job;
mod journal;
mod output;
mod report;
mod results;
mod run;
mod sessions;
pub mod split;
mod subject;
pub mod table;
mod typed;
pub mod untyped;

pub use advice::{Advice, Choice};
pub use contender::{Contender, ContenderError, shipped};
pub use csv::csv;
pub use figures::{Figures, UntypedFigures, Verdict};
pub use grid::{Cell, Grid, Mode};
pub use journal::{Journal, JournalError, Key};
pub use output::{Files, write};
pub use report::html;
pub use results::{CellResults, Results, Split, TraceResults};
pub use run::{Pace, run};
pub use sessions::{LARGEST, QUANTILES, SessionFigures, Sessions};
pub use subject::{Subject, budgets};
pub use typed::Setting;
pub use untyped::Pool;
