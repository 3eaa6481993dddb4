//! What is refused, with which words.

use reprise_core::model::{CacheType, Kind, MAX_LAYER, ModelSpec};

use super::simple_type;

const FULL: Kind = Kind::Compressed { ratio: 1 };
const SWA: Kind = Kind::Windowed { window_tokens: 128 };

/// The messages about a model, without the line that names it.
fn problems(groups: &[&str], types: Vec<CacheType>) -> Vec<String> {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    match ModelSpec::new("m", groups, types) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

/// The messages about a model of one block type and one window type, after `change`.
fn problems_after(change: impl FnOnce(&mut [CacheType; 2])) -> Vec<String> {
    let mut types = [simple_type("kv", "history", FULL), simple_type("swa", "window", SWA)];
    change(&mut types);
    problems(&["history", "window"], types.into())
}

#[test]
fn a_good_model_has_no_problems() {
    assert_eq!(problems_after(|_| ()), [""; 0]);
}

#[test]
fn a_wrong_type_is_refused_where_it_is_wrong() {
    type Case = (fn(&mut [CacheType; 2]), &'static str);
    let cases: [Case; 14] = [
        (
            |types| types[0].kind = Kind::Compressed { ratio: 0 },
            "type \"kv\" (types[0]): ratio is 0; it must be 1 to 65536: the tokens one row covers, 1 for plain full attention",
        ),
        (
            |types| types[1].kind = Kind::Windowed { window_tokens: 0 },
            "type \"swa\" (types[1]): window-tokens is 0; it must be 1 to 1048576: the last tokens that attention reads",
        ),
        (
            |types| types[0].row_bytes = 0,
            "type \"kv\" (types[0]): row-bytes is 0; it must be 1 to 16777216: the bytes of one row in one layer",
        ),
        (
            |types| types[0].row_bytes = (1 << 24) + 1,
            "type \"kv\" (types[0]): row-bytes is 16777217; it must be 1 to 16777216: the bytes of one row in one layer",
        ),
        (|types| types[0].name.clear(), "type \"\" (types[0]): has no name"),
        (
            |types| types[0].name = "KV cache".into(),
            "type \"KV cache\" (types[0]): has 'K' in its name; such names are made of letters a to z, digits and `-_.+`",
        ),
        (|types| types[0].row_format.clear(), "type \"kv\" (types[0]): row-format has no name"),
        (|types| types[1].name = "kv".into(), "type \"kv\" (types[1]): has the same name as types[0]"),
        (|types| types[1].name = "a".repeat(65), "has a name of 65 bytes; at most 64 are possible"),
        (
            |types| {
                types[1].row_bytes = 1 << 24;
                types[1].kind = Kind::Windowed { window_tokens: 257 };
            },
            "group \"window\" (groups[1]): a record has 4311744512 bytes even with the shortest block; at most 4294967296 are \
             possible",
        ),
        (
            |types| types[0].kind = SWA,
            "model: has no compressed type; prefixes are found by their blocks, so it needs one (ratio 1 is plain full attention)",
        ),
        (
            |types| types[1].kind = Kind::State { rows: 4 },
            "type \"swa\" (types[1]): needs a windowed type in the model: without a window there are no checkpoints to keep it with, \
             nor a replay",
        ),
        (
            |types| types[1].kind = Kind::Draft { window_tokens: 128 },
            "type \"swa\" (types[1]): needs a windowed type in the model: without a window there are no checkpoints to keep it with, \
             nor a replay",
        ),
        (
            |types| {
                types[1].row_bytes = 1;
                types[1].kind = Kind::Windowed { window_tokens: 1 << 20 };
                types[1].layers =
                    (0..=MAX_LAYER).map(|layer| layer.to_string()).collect::<Vec<_>>().join(",").parse().unwrap();
            },
            "model: the windows of all layers add up to 4294967296 tokens, which is more than a prompt can have",
        ),
    ];
    for (change, message) in cases {
        let found = problems_after(change);
        assert!(matches!(found.as_slice(), [only] if only.contains(message)), "expected {message:?}, found {found:#?}");
    }
}

#[test]
fn wrong_groups_are_refused_where_they_are_wrong() {
    let kv = || simple_type("kv", "history", FULL);
    let swa = |group| simple_type("swa", group, SWA);
    let cases: [(&[&str], Vec<CacheType>, &[&str]); 9] = [
        (
            &["history", "window"],
            vec![kv(), swa("windows")],
            &[
                "group \"window\" (groups[1]): no type names it as its group; leave it out or put a type into it",
                "type \"swa\" (types[1]): names the group \"windows\", which the model does not list; there is history, window",
            ],
        ),
        (&["history"], vec![kv(), swa("")], &["type \"swa\" (types[1]): is in no group; there is history"]),
        (
            &["history"],
            vec![kv(), swa("history")],
            &[
                "group \"history\" (groups[0]): mixes block records (type \"kv\") with checkpoint records (type \"swa\"); give each \
               its own group",
            ],
        ),
        (
            &["history", "window"],
            vec![kv(), swa("window"), simple_type("mtp", "window", Kind::Draft { window_tokens: 1 })],
            &[
                "group \"window\" (groups[1]): mixes checkpoint records (type \"swa\") with draft records (type \"mtp\"); give each \
               its own group",
            ],
        ),
        (&["history", "history"], vec![kv()], &["group \"history\" (groups[1]): has the same name as groups[0]"]),
        (
            &["history", "Window"],
            vec![kv(), swa("Window")],
            &[
                "group \"Window\" (groups[1]): has 'W' in its name; such names are made of letters a to z, digits and `-_.+`",
            ],
        ),
        (
            &[],
            vec![kv()],
            &["type \"kv\" (types[0]): names the group \"history\", which the model does not list; there is none"],
        ),
        (
            &["history"],
            vec![],
            &[
                "model: has no compressed type; prefixes are found by their blocks, so it needs one (ratio 1 is plain full \
                 attention)",
                "group \"history\" (groups[0]): no type names it as its group; leave it out or put a type into it",
            ],
        ),
        (
            &["history"],
            vec![
                simple_type("a", "history", Kind::Compressed { ratio: 65_521 }),
                simple_type("b", "history", Kind::Compressed { ratio: 2 }),
            ],
            &["model: the ratios have no common multiple up to 65536, which is the longest block in tokens"],
        ),
    ];
    for (groups, types, messages) in cases {
        assert_eq!(problems(groups, types), messages);
    }
}

#[test]
fn the_first_problem_does_not_hide_the_others() {
    let mut csa = simple_type("csa", "history", Kind::Compressed { ratio: 0 });
    csa.row_bytes = u32::MAX;
    let swa = simple_type("csa", "nowhere", Kind::Windowed { window_tokens: u32::MAX });
    let error = ModelSpec::new("", vec!["history".into(), "window".into()], vec![csa, swa]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model \"\" cannot be used:\
         \n  model: has no name\
         \n  group \"window\" (groups[1]): no type names it as its group; leave it out or put a type into it\
         \n  type \"csa\" (types[0]): ratio is 0; it must be 1 to 65536: the tokens one row covers, 1 for plain full attention\
         \n  type \"csa\" (types[0]): row-bytes is 4294967295; it must be 1 to 16777216: the bytes of one row in one layer\
         \n  type \"csa\" (types[1]): has the same name as types[0]\
         \n  type \"csa\" (types[1]): window-tokens is 4294967295; it must be 1 to 1048576: the last tokens that attention reads\
         \n  type \"csa\" (types[1]): names the group \"nowhere\", which the model does not list; there is history, window"
    );
}

#[test]
fn too_many_types_or_groups_are_refused() {
    let types = (0..65).map(|index| simple_type(&format!("t{index}"), "history", FULL)).collect();
    assert_eq!(problems(&["history"], types), ["model: has 65 types; at most 64 are possible"]);

    let groups: Vec<String> = (0..17).map(|index| format!("g{index}")).collect();
    let types = groups.iter().map(|group| simple_type(&format!("t-{group}"), group, FULL)).collect();
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    assert_eq!(problems(&names, types), ["model: has 17 groups; at most 16 are possible"]);
}

#[test]
fn a_name_that_would_garble_a_report_is_refused() {
    let error = ModelSpec::new("a\nb", vec!["history".into()], vec![simple_type("kv", "history", FULL)]).unwrap_err();
    assert_eq!(error.problems[0].to_string(), "model: has '\\n' in its name, which would garble a report");
}

#[test]
fn several_groups_of_a_role_are_a_model() {
    let types = vec![
        simple_type("kv", "history", FULL),
        simple_type("indexer", "index", Kind::Compressed { ratio: 4 }),
        simple_type("swa", "window", SWA),
    ];
    assert_eq!(problems(&["history", "index", "window"], types), [""; 0]);
}
