//! Checks a model and says everything that is wrong with it, not only the first thing.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use super::{
    CacheType, Group, GroupFault, Kind, MAX_BLOCK_TOKENS, MAX_GROUPS, MAX_NAME_BYTES, MAX_RECORD_BYTES, MAX_ROW_BYTES,
    MAX_TYPES, MAX_WINDOW_TOKENS, ModelFault, NameFault, Problem, Role, TypeFault,
};

/// What [`check`] derives on its way.
pub(super) struct Checked {
    pub groups: Vec<Group>,
    pub block_multiple: u32,
    pub zero_replay_tokens: u32,
}

/// Checks names, ranges, grouping and sizes.
///
/// # Errors
/// All problems, in the order model, groups, types.
pub(super) fn check(name: &str, group_names: &[String], types: &[CacheType]) -> Result<Checked, Vec<Problem>> {
    let mut problems = Vec::new();
    problems.extend(model_name_fault(name).map(|fault| Problem::Model(fault.into())));
    let block_multiple = block_multiple(types);
    let zero_replay_tokens = zero_replay_tokens(types);
    problems.extend(model_faults(group_names, types, block_multiple, zero_replay_tokens).map(Problem::Model));

    let mut groups = Vec::with_capacity(group_names.len());
    for (index, name) in group_names.iter().enumerate() {
        let group = group_of(name, types);
        let faults = group_faults(&group, &group_names[..index], types, block_multiple.unwrap_or(MAX_BLOCK_TOKENS));
        problems.extend(faults.map(|fault| Problem::Group { index, name: name.clone(), fault }));
        groups.push(group);
    }
    for (index, cache_type) in types.iter().enumerate() {
        let faults = type_faults(cache_type, &types[..index], group_names, types);
        problems.extend(faults.map(|fault| Problem::Type { index, name: cache_type.name.clone(), fault }));
    }
    match (block_multiple, u32::try_from(zero_replay_tokens)) {
        (Some(block_multiple), Ok(zero_replay_tokens)) if problems.is_empty() => {
            Ok(Checked { groups, block_multiple, zero_replay_tokens })
        }
        _ => Err(problems),
    }
}

fn model_faults(
    group_names: &[String],
    types: &[CacheType],
    block_multiple: Option<u32>,
    zero_replay_tokens: u64,
) -> impl Iterator<Item = ModelFault> {
    let has_blocks = types.iter().any(|cache_type| cache_type.kind.role() == Role::Block);
    [
        (types.len() > MAX_TYPES).then_some(ModelFault::TooManyTypes { count: types.len() }),
        (group_names.len() > MAX_GROUPS).then_some(ModelFault::TooManyGroups { count: group_names.len() }),
        (!has_blocks).then_some(ModelFault::NoBlocks),
        block_multiple.is_none().then_some(ModelFault::NoCommonBlock),
        (zero_replay_tokens > u64::from(u32::MAX)).then_some(ModelFault::ReplayTooLong { tokens: zero_replay_tokens }),
    ]
    .into_iter()
    .flatten()
}

/// The group as its types make it. Its role is that of the first type; [`group_faults`] finds any other.
fn group_of(name: &str, types: &[CacheType]) -> Group {
    let members = types.iter().enumerate().filter(|(_, cache_type)| cache_type.group == name);
    let indices: Vec<usize> = members.map(|(index, _)| index).collect();
    let role = indices.first().map_or(Role::Block, |&first| types[first].kind.role());
    Group { name: name.to_owned(), role, types: indices }
}

fn group_faults(
    group: &Group,
    before: &[String],
    types: &[CacheType],
    block_tokens: u32,
) -> impl Iterator<Item = GroupFault> {
    let members = || group.types.iter().map(|&index| &types[index]);
    let duplicate = before.iter().position(|other| *other == group.name);
    let stranger = members().find(|member| member.kind.role() != group.role);
    let mixed = members().next().zip(stranger).map(|(first, stranger)| GroupFault::Mixed {
        role_a: group.role,
        type_a: first.name.clone(),
        role_b: stranger.kind.role(),
        type_b: stranger.name.clone(),
    });
    let bytes = members().fold(0_u64, |sum, member| sum.saturating_add(member.bytes(block_tokens)));
    [
        name_fault(&group.name).map(GroupFault::Name),
        duplicate.map(|first| GroupFault::Duplicate { first }),
        group.types.is_empty().then_some(GroupFault::Empty),
        mixed,
        (bytes > MAX_RECORD_BYTES).then_some(GroupFault::RecordTooLarge { bytes }),
    ]
    .into_iter()
    .flatten()
}

fn type_faults(
    cache_type: &CacheType,
    before: &[CacheType],
    group_names: &[String],
    types: &[CacheType],
) -> impl Iterator<Item = TypeFault> {
    let duplicate = before.iter().position(|other| other.name == cache_type.name);
    let (parameter, value, max, meaning) = match cache_type.kind {
        Kind::Compressed { ratio } => {
            ("ratio", ratio, MAX_BLOCK_TOKENS, "the tokens one row covers, 1 for plain full attention")
        }
        Kind::Windowed { window_tokens } | Kind::Draft { window_tokens } => {
            ("window-tokens", window_tokens, MAX_WINDOW_TOKENS, "the last tokens that attention reads")
        }
        Kind::State { rows } | Kind::DraftState { rows } => {
            ("rows", rows, MAX_WINDOW_TOKENS, "the rows kept at a checkpoint")
        }
    };
    let row_bytes = cache_type.row_bytes;
    let needs_window = matches!(cache_type.kind.role(), Role::Draft) || matches!(cache_type.kind, Kind::State { .. });
    let has_window = types.iter().any(|other| matches!(other.kind, Kind::Windowed { .. }));
    [
        name_fault(&cache_type.name).map(TypeFault::Name),
        duplicate.map(|first| TypeFault::Duplicate { first }),
        out_of_range(parameter, value, max, meaning),
        out_of_range("row-bytes", row_bytes, MAX_ROW_BYTES, "the bytes of one row in one layer"),
        name_fault(&cache_type.row_format).map(TypeFault::Format),
        group_fault(&cache_type.group, group_names),
        (needs_window && !has_window).then_some(TypeFault::NoWindow),
    ]
    .into_iter()
    .flatten()
}

fn out_of_range(field: &'static str, value: u32, max: u32, meaning: &'static str) -> Option<TypeFault> {
    (value == 0 || value > max).then_some(TypeFault::OutOfRange { field, value, max, meaning })
}

fn group_fault(group: &str, group_names: &[String]) -> Option<TypeFault> {
    if group_names.iter().any(|name| name == group) {
        return None;
    }
    let known = if group_names.is_empty() { "none".to_owned() } else { group_names.join(", ") };
    Some(if group.is_empty() {
        TypeFault::NoGroup { known }
    } else {
        TypeFault::UnknownGroup { group: group.to_owned(), known }
    })
}

fn name_fault(name: &str) -> Option<NameFault> {
    let allowed = |character| matches!(character, 'a'..='z' | '0'..='9' | '-' | '_' | '.' | '+');
    let character = || name.chars().find(|&character| !allowed(character)).map(NameFault::Character);
    length_fault(name).or_else(character)
}

/// The name of a model is for people only: `DeepSeek-V4-Pro`, `v4-pro:draft=on`.
fn model_name_fault(name: &str) -> Option<NameFault> {
    length_fault(name).or_else(|| name.chars().find(|character| character.is_control()).map(NameFault::Control))
}

fn length_fault(name: &str) -> Option<NameFault> {
    match name.len() {
        0 => Some(NameFault::Empty),
        bytes if bytes > MAX_NAME_BYTES => Some(NameFault::TooLong { bytes }),
        _ => None,
    }
}

/// Least common multiple of the ratios; 1 if there is none. A ratio of 0 is a problem of its own and is left out here.
fn block_multiple(types: &[CacheType]) -> Option<u32> {
    let mut ratios = types.iter().filter_map(|cache_type| match cache_type.kind {
        Kind::Compressed { ratio } if ratio != 0 => Some(ratio),
        _ => None,
    });
    ratios.try_fold(1_u32, |multiple, ratio| {
        let product = u64::from(multiple / greatest_common_divisor(multiple, ratio)) * u64::from(ratio);
        u32::try_from(product).ok().filter(|&product| product <= MAX_BLOCK_TOKENS)
    })
}

const fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Sum of the windows of all layers: at most 64 types × 4096 layers × 2^32 tokens, so that it cannot overflow for a model that has
/// no other problem; saturates for one that has.
fn zero_replay_tokens(types: &[CacheType]) -> u64 {
    let windows = types
        .iter()
        .map(|cache_type| u64::from(cache_type.kind.window_tokens()).saturating_mul(cache_type.layers.count() as u64));
    windows.fold(0, u64::saturating_add)
}
