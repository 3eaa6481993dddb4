//! `describe` and `configure`, the same for every kind of policy.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use bindings::exports::reprise::policy::setup::{Description, Guest, Kind, Setting};
use reprise_core::policy::{self, Policy, Settings};

use crate::slot::Resident;

/// What wit-bindgen makes of the interface. The worlds of the contract are put together from parts like this one: the parts that a
/// component exports are merged when it is made.
#[expect(missing_docs, reason = "generated; the documentation is in wit/")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package reprise:sdk-setup; world setup-part { export reprise:policy/setup@0.1.0; }",
        world: "reprise:sdk-setup/setup-part",
        pub_export_macro: true,
        export_macro_name: "export_setup",
    });
}

impl<R: Resident<Policy: Policy>> Guest for R {
    fn describe() -> Description {
        let own = R::Policy::DESCRIPTION;
        Description {
            name: own.name.into(),
            version: own.version.into(),
            kind: match own.kind {
                policy::Kind::Checkpoint => Kind::Checkpoint,
                policy::Kind::Cache => Kind::Cache,
            },
            admission: own.admission,
            state_schema: own.state_schema,
            settings: own.settings.iter().map(Setting::from).collect(),
        }
    }

    fn configure(given: Vec<(String, String)>) -> Result<(), String> {
        let settings = Settings::parse(R::Policy::DESCRIPTION.settings, given).map_err(|error| error.to_string())?;
        R::slot().install(R::Policy::new(&settings));
        Ok(())
    }
}

impl From<&policy::Setting> for Setting {
    fn from(setting: &policy::Setting) -> Self {
        let policy::Setting { key, help, default, min, max } = *setting;
        Self { key: key.into(), help: help.into(), default, min, max }
    }
}
