//! What was measured, as a table for a person and as one object for a program.

use std::{fmt::Write, time::Duration};

use reprise::disk::IoEngine;
use serde_json::{Value, json};

use super::{Direction, Latencies, Name, Outcome, Rate, median};
use crate::figures::{columns, grouped, human_bytes, short_time};

impl Outcome {
    /// All figures: medians over the rounds, latencies over all records.
    pub fn json(&self) -> Value {
        let Self { options, records, slot_bytes, mode, engine, notes, compared, .. } = self;
        let engine_name = match engine {
            IoEngine::Ring { .. } => "io_uring",
            IoEngine::Blocking { .. } => "blocking",
        };
        json!({
            "record_bytes": options.record_bytes,
            "slot_bytes": slot_bytes,
            "records": records,
            "depth": options.depth,
            "rounds": options.rounds,
            "seconds": options.turn.as_secs_f64(),
            "direct": self.is_direct(),
            "measures": if self.is_direct() { "device" } else { "software" },
            "mode": mode.to_string(),
            "engine": engine_name,
            "engine_detail": engine.to_string(),
            "notes": notes,
            "fio_version": options.fio,
            "put": self.direction_json(Direction::Put),
            "get": self.direction_json(Direction::Get),
            "write_amplification": self.write_amplification,
            "compared_bytes": compared.bytes,
            "wrong_bytes": compared.wrong_bytes,
        })
    }

    fn direction_json(&self, direction: Direction) -> Value {
        let rates = |name| {
            let (gib_per_second, processor) = (self.gib_per_second(direction, name)?, self.processor(direction, name));
            Some(json!({ "gib_per_second": gib_per_second, "cpu_seconds_per_gib": processor }))
        };
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let latency = self.latencies.get(&direction).map(|latencies| {
            let [p50, p99, max] = quantiles(latencies).map(micros);
            json!({ "p50": p50, "p99": p99, "max": max })
        });
        json!({
            "store": rates(Name::Store),
            "raw": rates(Name::Raw),
            "fio": rates(Name::Fio),
            "store_over_raw": self.ratio(direction, Name::Raw),
            "store_over_fio": self.ratio(direction, Name::Fio),
            "latency_us": latency,
        })
    }

    /// The tables.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        self.write_head(out)?;
        let mut rows = vec![["", "", "GiB/s", "store / this", "CPU s/GiB"].map(str::to_owned)];
        rows.extend(Direction::ALL.into_iter().flat_map(|direction| self.rate_rows(direction)));
        columns(&rows, &[0, 1]).iter().try_for_each(|line| writeln!(out, "{line}"))?;

        let mut rows = vec![["store, a record's latency", "p50", "p99", "longest"].map(str::to_owned)];
        rows.extend(self.latencies.iter().map(|(direction, latencies)| {
            let [p50, p99, longest] = quantiles(latencies).map(short_time);
            [direction.name().to_owned(), p50, p99, longest]
        }));
        writeln!(out)?;
        columns(&rows, &[0]).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        if let Some(written) = self.write_amplification {
            writeln!(out, "\nwritten for each byte put: {written:.4} bytes, tables and trailers included")?;
        }
        let (wrong, compared) = (grouped(self.compared.wrong_bytes), human_bytes(self.compared.bytes));
        writeln!(out, "\nwrong bytes: {wrong} of {compared} compared, every record before and after the rounds")
    }

    fn write_head(&self, out: &mut String) -> std::fmt::Result {
        let Self { options, records, mode, engine, .. } = self;
        let bytes = grouped(options.record_bytes);
        let in_all = human_bytes(u64::from(*records) * options.record_bytes);
        writeln!(
            out,
            "{} records of {bytes} bytes, {in_all}, in the store and as many in a plain file",
            grouped((*records).into())
        )?;
        writeln!(out, "turns of {} s, {} for each; figures are medians", options.turn.as_secs_f64(), options.rounds)?;
        writeln!(out, "store: input/output is {mode}")?;
        if self.is_direct() {
            let depth = options.depth;
            writeln!(out, "       batches by {engine}, {depth} at once")?;
            writeln!(out, "raw:   pread and pwrite on {depth} threads, past the page cache as well")?;
        } else {
            writeln!(out, "       one record after the other, on one thread")?;
            writeln!(out, "raw:   pread or pwrite and an XXH3 checksum, one after the other, on one thread")?;
        }
        if let Some(version) = &options.fio {
            let depth = if self.is_direct() { options.depth } else { 1 };
            writeln!(out, "fio:   {version}, io_uring, {depth} at once, no checksum")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        if !self.is_direct() {
            writeln!(out, "No device is measured here: this is the software's own cost.")?;
        }
        writeln!(out)
    }

    fn rate_rows(&self, direction: Direction) -> Vec<[String; 5]> {
        let row = |name: Name| {
            let ratio = self.ratio(direction, name).filter(|_| name != Name::Store);
            Some([
                if name == Name::Store { direction.name() } else { "" }.to_owned(),
                name.text().to_owned(),
                format!("{:.3}", self.gib_per_second(direction, name)?),
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}")),
                self.processor(direction, name).map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3}")),
            ])
        };
        [Name::Store, Name::Raw, Name::Fio].into_iter().filter_map(row).collect()
    }

    fn rates(&self, direction: Direction, name: Name) -> Option<&[Rate]> {
        self.rates.get(&(direction, name)).map(Vec::as_slice)
    }

    fn gib_per_second(&self, direction: Direction, name: Name) -> Option<f64> {
        let rates = self.rates(direction, name)?.iter();
        Some(median(rates.map(|rate| rate.gib_per_second(self.options.record_bytes))))
    }

    fn processor(&self, direction: Direction, name: Name) -> Option<f64> {
        let rates = self.rates(direction, name)?.iter();
        let known: Option<Vec<f64>> =
            rates.map(|rate| rate.processor_seconds_per_gib(self.options.record_bytes)).collect();
        Some(median(known?.into_iter()))
    }

    /// The median over the rounds of how many times as fast as `other` the store was.
    fn ratio(&self, direction: Direction, other: Name) -> Option<f64> {
        let pairs = self.rates(direction, Name::Store)?.iter().zip(self.rates(direction, other)?);
        Some(median(pairs.map(|(store, other)| store.records_per_second() / other.records_per_second())))
    }
}

fn quantiles(latencies: &Latencies) -> [Duration; 3] {
    [latencies.within(0.5), latencies.within(0.99), latencies.longest()]
}
