//! Formats of one request a line whose ids the whole trace shares: Mooncake and Qwen-Bailian. They differ in the unit of
//! `timestamp` and in the tokens of a block.

use serde::Deserialize;

use super::field::{List, Scalar, optional_count, required, required_list};
use super::read::{Builder, Row, parse, prompt_tokens};
use super::source::Source;
use super::{RecordFault, TraceError};

/// The unit of Mooncake times, in microseconds.
pub(super) const MILLISECOND_US: f64 = 1e3;
/// The unit of Bailian times, in microseconds.
pub(super) const SECOND_US: f64 = 1e6;

#[derive(Deserialize)]
struct Line {
    timestamp: Option<Scalar>,
    input_length: Option<Scalar>,
    output_length: Option<Scalar>,
    hash_ids: Option<List<u64>>,
}

/// Reads all lines into `builder`.
pub(super) fn read(source: &mut Source<'_>, builder: &mut Builder, unit_us: f64) -> Result<(), TraceError> {
    while let Some(line) = source.next_line()? {
        let record = line.and_then(parse::<Line>).and_then(|line| {
            let row = row(&line, unit_us)?;
            Ok((row, required_list(line.hash_ids, "hash_ids", "a list of whole numbers")?))
        });
        match record {
            Ok((row, ids)) => builder.push(row, &ids)?,
            Err(fault) => builder.bad(source.bad_line(fault))?,
        }
    }
    Ok(())
}

fn row(line: &Line, unit_us: f64) -> Result<Row, RecordFault> {
    Ok(Row {
        time_us: required(&line.timestamp, "timestamp")?.time_us("timestamp", unit_us)?,
        session: 0,
        scope: 0,
        prompt_tokens: prompt_tokens(&line.input_length, "input_length")?,
        output_tokens: optional_count(&line.output_length),
    })
}
