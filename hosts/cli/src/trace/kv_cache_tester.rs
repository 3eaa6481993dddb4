//! The session files of kv-cache-tester: `{"id", "block_size", "hash_id_scope", "requests": [...]}`, where a request has
//! `t` (s), `in`, `out`, `hash_ids`, and a sub-agent is an entry with `t` and `requests` of its own, to any depth.
//!
//! Ids are local to a session and its sub-agents, unless `hash_id_scope` is `"global"`: then all sessions that say so
//! share them.
//!
//! Two conventions are found for the times inside a sub-agent: seconds since the entry that spawned it (the tool's own
//! files), or seconds since the start of the session, like the entry itself (files published by others). They are told
//! apart for each session: a sub-agent cannot start before it was spawned, so one whose earliest inner time lies before
//! its entry's votes for relative times, any other for absolute ones, and the majority decides; relative wins a tie. (A
//! sub-agent of the relative kind begins near 0, so it votes wrongly only if it was spawned almost at once, and then the
//! two hardly differ.)

use serde::Deserialize;

use super::field::{List, Object, Scalar, optional_count, required, required_list};
use super::read::{Builder, Row, prompt_tokens};
use super::source::Source;
use super::{Place, RecordFault, TraceError};

/// Clocks of parent and sub-agent may differ by this much.
const TOLERANCE_US: u64 = 1_000;

#[derive(Deserialize)]
struct SessionFile {
    block_size: Option<Scalar>,
    hash_id_scope: Option<Scalar>,
    requests: Option<Vec<Object<Entry>>>,
}

/// A request, or a sub-agent if it has requests of its own.
#[derive(Deserialize)]
struct Entry {
    t: Option<Scalar>,
    #[serde(rename = "in")]
    prompt: Option<Scalar>,
    out: Option<Scalar>,
    hash_ids: Option<List<u64>>,
    requests: Option<Vec<Object<Entry>>>,
    #[serde(rename = "type")]
    kind: Option<Scalar>,
}

impl Entry {
    fn is_sub_agent(&self) -> bool {
        self.requests.is_some() || matches!(&self.kind, Some(Scalar::Text(kind)) if kind == "subagent")
    }

    fn time_us(&self) -> Result<u64, RecordFault> {
        required(&self.t, "t")?.time_us("t", 1e6)
    }
}

/// Reads one file, which holds one session or several, into `builder`.
pub(super) fn read(source: &mut Source<'_>, builder: &mut Builder) -> Result<(), TraceError> {
    let file = source.name.clone();
    let bad = |place, fault| TraceError::BadRecord { file: file.clone(), place, fault };
    let text = match source.rest()? {
        Ok(text) if !text.trim_ascii().is_empty() => Ok(text),
        Ok(_) => Err(RecordFault::Missing("requests")),
        Err(fault) => Err(fault),
    };
    let text = match text {
        Ok(text) => text,
        Err(fault) => {
            builder.begin_session(); // a bad session keeps its place in time
            return builder.bad(bad(Place::File, fault));
        }
    };
    let objects = serde_json::Deserializer::from_str(text).into_iter::<Object<SessionFile>>();
    for object in objects {
        let number = builder.begin_session();
        let object = match object {
            Ok(Object(object)) => object,
            Err(error) => {
                let place = Place::Line(error.line() as u64);
                return builder.bad(bad(place, RecordFault::json(&error)));
            }
        };
        let entries = match object.requests.ok_or(RecordFault::Missing("requests")) {
            Ok(entries) => entries,
            Err(fault) => {
                builder.bad(bad(Place::File, fault))?;
                continue;
            }
        };
        if let Err(fault) = builder.state_block(&object.block_size) {
            builder.bad(bad(Place::File, fault))?;
            continue;
        }
        let global = matches!(&object.hash_id_scope, Some(Scalar::Text(scope)) if scope == "global");
        let mut session = Session {
            number,
            scope: if global { 0 } else { number + 1 },
            relative: inner_times_are_relative(&entries),
            path: Vec::new(),
        };
        session.push(entries, 0, builder, &bad)?;
    }
    Ok(())
}

struct Session {
    number: u32,
    scope: u32,
    relative: bool,
    /// Where in the nested lists of requests we are, from 1.
    path: Vec<u64>,
}

impl Session {
    fn push(
        &mut self,
        entries: Vec<Object<Entry>>,
        base_us: u64,
        builder: &mut Builder,
        bad: &impl Fn(Place, RecordFault) -> TraceError,
    ) -> Result<(), TraceError> {
        self.path.push(0);
        for Object(entry) in entries {
            if let Some(index) = self.path.last_mut() {
                *index += 1;
            }
            let time_us = entry.time_us().map(|time_us| base_us + time_us);
            let fault = if entry.is_sub_agent() {
                match time_us {
                    Ok(start_us) => {
                        let base_us = if self.relative { start_us } else { base_us };
                        self.push(entry.requests.unwrap_or_default(), base_us, builder, bad)?;
                        None
                    }
                    Err(fault) => Some(fault),
                }
            } else {
                match time_us.and_then(|time_us| self.row(time_us, entry)) {
                    Ok((row, ids)) => {
                        builder.push(row, &ids)?;
                        None
                    }
                    Err(fault) => Some(fault),
                }
            };
            if let Some(fault) = fault {
                builder.bad(bad(Place::Request(self.path.clone()), fault))?;
            }
        }
        self.path.pop();
        Ok(())
    }

    fn row(&self, time_us: u64, entry: Entry) -> Result<(Row, Vec<u64>), RecordFault> {
        let row = Row {
            time_us,
            session: self.number,
            scope: self.scope,
            prompt_tokens: prompt_tokens(&entry.prompt, "in")?,
            output_tokens: optional_count(&entry.out),
        };
        Ok((row, required_list(entry.hash_ids, "hash_ids", "a list of whole numbers")?))
    }
}

/// The convention of a session, by the vote described above.
fn inner_times_are_relative(entries: &[Object<Entry>]) -> bool {
    let (mut relative, mut absolute) = (0_u64, 0_u64);
    let mut lists = vec![entries];
    while let Some(entries) = lists.pop() {
        for Object(entry) in entries {
            let inner = entry.requests.as_deref().unwrap_or_default();
            lists.push(inner);
            let earliest_us = inner.iter().filter_map(|Object(entry)| entry.time_us().ok()).min();
            if let (Ok(spawned_us), Some(earliest_us)) = (entry.time_us(), earliest_us) {
                let before = earliest_us + TOLERANCE_US < spawned_us;
                *(if before { &mut relative } else { &mut absolute }) += 1;
            }
        }
    }
    relative > 0 && relative >= absolute
}

#[cfg(test)]
mod tests {
    use crate::trace::{ReadOptions, Trace};

    fn read(text: &str) -> Trace {
        Trace::from_reader("s.json", text.as_bytes(), &ReadOptions::default()).unwrap()
    }

    fn request(t: f64, id: u32) -> String {
        format!(
            r#"{{"t": {t}, "type": "s", "model": "m", "in": 100, "out": 9, "hash_ids": [1, {id}], "input_types": ["text"],
               "output_types": [], "stop": "", "api_time": 1.5, "think_time": null}}"#
        )
    }

    fn sub_agent(t: f64, requests: &[String]) -> String {
        format!(
            r#"{{"t": {t}, "type": "subagent", "agent_id": "a", "subagent_type": "Explore", "duration_ms": null,
               "requests": [{}], "models": ["m"], "tool_tokens": 0}}"#,
            requests.join(",")
        )
    }

    fn session(requests: &[String]) -> String {
        format!(
            r#"{{"id": "x", "models": ["m"], "block_size": 64, "tool_tokens": 5, "system_tokens": 6, "requests": [{}]}}"#,
            requests.join(",")
        )
    }

    /// Session time in ms and last id of each request, in file order.
    fn times(trace: &Trace) -> Vec<(u64, u32)> {
        trace.requests.iter().map(|r| (r.time_us / 1_000, trace.ids(r)[1])).collect()
    }

    #[test]
    fn both_conventions_of_inner_times_give_the_same_requests() {
        let relative = session(&[
            request(0.0, 10),
            sub_agent(100.65, &[request(0.0, 20), request(7.0, 21), sub_agent(9.0, &[request(0.5, 30)])]),
            sub_agent(104.0, &[request(0.0, 40), request(200.0, 41)]),
            request(160.0, 11),
        ]);
        let absolute = session(&[
            request(0.0, 10),
            sub_agent(100.65, &[request(100.65, 20), request(107.65, 21), sub_agent(109.65, &[request(110.15, 30)])]),
            sub_agent(104.0, &[request(104.0, 40), request(304.0, 41)]),
            request(160.0, 11),
        ]);
        let expected =
            [(0, 10), (100_650, 20), (107_650, 21), (110_150, 30), (104_000, 40), (304_000, 41), (160_000, 11)];
        assert_eq!(times(&read(&relative)), expected);
        assert_eq!(times(&read(&absolute)), expected);
        let order = read(&relative).order_of_arrival(0);
        assert_eq!(order, [0, 1, 4, 2, 3, 6, 5]);
    }

    #[test]
    fn one_odd_clock_does_not_shift_a_whole_session() {
        // Absolute, but the second of three sub-agents is stamped 2 s before its entry.
        let text = session(&[
            sub_agent(10.0, &[request(10.5, 1)]),
            sub_agent(20.0, &[request(18.0, 2)]),
            sub_agent(30.0, &[request(30.0, 3)]),
        ]);
        assert_eq!(times(&read(&text)), [(10_500, 1), (18_000, 2), (30_000, 3)]);
        // Relative, but the first was spawned so early that its times may be either.
        let text = session(&[sub_agent(0.25, &[request(0.5, 1)]), sub_agent(20.0, &[request(0.0, 2)])]);
        assert_eq!(times(&read(&text)), [(750, 1), (20_000, 2)]);
    }

    #[test]
    fn sub_agents_do_not_get_a_scope_of_their_own() {
        let text = session(&[request(0.0, 10), sub_agent(1.0, &[request(0.0, 10)])]);
        let trace = read(&[text.as_str(), &text].concat());
        let scopes: Vec<_> = trace.requests.iter().map(|r| (r.session, r.scope)).collect();
        assert_eq!(scopes, [(0, 1), (0, 1), (1, 2), (1, 2)]);
    }

    #[test]
    fn global_ids_are_not_split_by_session() {
        let text = session(&[request(0.0, 10)]);
        let global = text.replace("\"block_size\"", "\"hash_id_scope\": \"global\", \"block_size\"");
        let local = text.replace("\"block_size\"", "\"hash_id_scope\": \"local\", \"block_size\"");
        let trace = read(&[global.as_str(), &local, &global].concat());
        let scopes: Vec<_> = trace.requests.iter().map(|r| (r.session, r.scope)).collect();
        assert_eq!(scopes, [(0, 0), (1, 2), (2, 0)]);
        assert_eq!(trace.arrival_us(&trace.requests[2], 5), 10, "each session still starts in its own time");
    }

    #[test]
    fn the_order_of_files_is_never_that_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let pretty = session(&[request(0.0, 2)]).replace(',', ",\n");
        let gzip = crate::trace::source::gzip(session(&[request(0.0, 1)]).as_bytes());
        std::fs::write(directory.path().join("trace_10.json"), pretty).unwrap();
        std::fs::write(directory.path().join("trace_02.json.gz"), gzip).unwrap();
        std::fs::write(directory.path().join("notes.txt"), "no session").unwrap();
        let trace = Trace::read(directory.path(), &ReadOptions::default()).unwrap();
        assert_eq!((times(&trace), trace.sessions), (vec![(0, 1), (0, 2)], 2));
    }

    #[test]
    fn a_bad_session_file_does_not_move_the_next_one_in_time() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("2.json"), session(&[request(0.0, 1)])).unwrap();
        let skip = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        for (bad, reason) in [
            (&b"{}"[..], "1.json: missing field `requests`"),
            (b" \n", "1.json: missing field `requests`"),
            (b"{\"\xff\": 1}", "1.json: not UTF-8 from byte 2 on"),
            (b"{\"requests\": 7}", "1.json:1: bad JSON: invalid type: integer `7`, expected a sequence at column 14"),
            (b"{\"requests\": []}", "1.json: missing field `block_size`"),
        ] {
            std::fs::write(directory.path().join("1.json"), bad).unwrap();
            let error = Trace::read(directory.path(), &ReadOptions::default()).unwrap_err().to_string();
            assert!(error.ends_with(reason), "{error}");
            let trace = Trace::read(directory.path(), &skip).unwrap();
            assert_eq!((trace.requests[0].session, trace.skipped), (1, 1), "{reason}");
        }
    }

    #[test]
    fn a_directory_without_sessions_is_told_apart_from_an_empty_trace() {
        let directory = tempfile::tempdir().unwrap();
        let error = Trace::read(directory.path(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("holds no session files"), "{error}");
    }
}
