//! `layout` on top of `reprise_core::{model, layout}`.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
};

use reprise_core::{layout, model};

use crate::{
    bindings::exports::reprise::policy::layout::{
        CacheType, GroupLayout, Guest, Kind, Layout, LayoutError, Model, Role, TypeLayout,
    },
    export::Core,
};

impl Guest for Core {
    fn preset(name: String) -> Result<Model, LayoutError> {
        let model = model::preset(&name).map_err(|error| LayoutError::Name(error.to_string()))?;
        Ok(Model {
            name: model.name().to_owned(),
            groups: model.groups().iter().map(|group| group.name.clone()).collect(),
            types: model.types().iter().map(CacheType::from).collect(),
        })
    }

    fn layout_of(model: Model, block_tokens: u32) -> Result<Layout, LayoutError> {
        let Model { name, groups, types } = model;
        let types = types.into_iter().map(cache_type).collect::<Result<_, _>>()?;
        let model =
            model::ModelSpec::new(name, groups, types).map_err(|error| LayoutError::Model(error.to_string()))?;
        let layout =
            layout::Layout::new(&model, block_tokens).map_err(|error| LayoutError::Block(error.to_string()))?;
        Ok(Layout {
            block_multiple: model.block_multiple(),
            zero_replay_tokens: model.zero_replay_tokens(),
            groups: layout.groups().iter().map(GroupLayout::from).collect(),
        })
    }
}

fn cache_type(cache_type: CacheType) -> Result<model::CacheType, LayoutError> {
    let CacheType { name, group, kind, layers, row_bytes, row_format } = cache_type;
    let layers = model::Layers::new(layers).map_err(|error| LayoutError::Model(error.to_string()))?;
    let kind = match kind {
        Kind::Compressed(ratio) => model::Kind::Compressed { ratio },
        Kind::Windowed(window_tokens) => model::Kind::Windowed { window_tokens },
        Kind::State(rows) => model::Kind::State { rows },
        Kind::Draft(window_tokens) => model::Kind::Draft { window_tokens },
        Kind::DraftState(rows) => model::Kind::DraftState { rows },
    };
    Ok(model::CacheType { name, group, kind, layers, row_bytes, row_format })
}

impl From<&model::CacheType> for CacheType {
    fn from(cache_type: &model::CacheType) -> Self {
        let model::CacheType { name, group, kind, layers, row_bytes, row_format } = cache_type.clone();
        let kind = match kind {
            model::Kind::Compressed { ratio } => Kind::Compressed(ratio),
            model::Kind::Windowed { window_tokens } => Kind::Windowed(window_tokens),
            model::Kind::State { rows } => Kind::State(rows),
            model::Kind::Draft { window_tokens } => Kind::Draft(window_tokens),
            model::Kind::DraftState { rows } => Kind::DraftState(rows),
        };
        Self { name, group, kind, layers: layers.iter().collect(), row_bytes, row_format }
    }
}

impl From<&layout::GroupLayout> for GroupLayout {
    fn from(group: &layout::GroupLayout) -> Self {
        Self {
            name: group.name().to_owned(),
            role: match group.role() {
                model::Role::Block => Role::Block,
                model::Role::Checkpoint => Role::Checkpoint,
                model::Role::Draft => Role::Draft,
            },
            fingerprint: group.fingerprint().0.to_vec(),
            record_bytes: group.record_bytes(),
            slot_bytes: group.slot_bytes(),
            types: group.types().iter().map(TypeLayout::from).collect(),
            sections: group.sections().to_vec(),
        }
    }
}

impl From<&layout::TypeLayout> for TypeLayout {
    fn from(cache_type: &layout::TypeLayout) -> Self {
        Self {
            name: cache_type.name().to_owned(),
            layers: cache_type.layers().iter().collect(),
            start: cache_type.bytes().start,
            rows: cache_type.rows(),
            row_bytes: cache_type.row_bytes(),
        }
    }
}
