//! `reprise policy new`.

use super::{Failure, print};
use crate::{
    args::NewPolicy,
    policy::new::{self, Kind, Language, Options},
};

pub(super) fn run(arguments: NewPolicy) -> Result<(), Failure> {
    let NewPolicy { name, language, kind, directory, sdk } = arguments;
    let folder = new::write(&Options { name: name.clone(), language, kind, directory, sdk })?;
    let file = format!("build/{name}.wasm");
    let seat = match kind {
        Kind::Cache => "eviction",
        Kind::Checkpoint => "checkpoints",
    };
    let profile = match language {
        Language::Rust | Language::C => "",
        Language::Python | Language::Js => " --policy-profile interpreted",
    };
    let mut steps = vec![format!("cd {}", folder.display())];
    if language == Language::Rust {
        steps.push("cargo test".to_owned());
    }
    steps.extend([
        "reprise policy build".to_owned(),
        format!("reprise policy check {file}"),
        format!("reprise replay --{seat} {file}{profile}"),
    ]);
    let steps: String = steps.iter().map(|step| format!("  {step}\n")).collect();
    print(&format!(
        "{}: a {} policy in {}, which works as it is\n\nNext:\n{steps}",
        folder.display(),
        kind.name(),
        language.title()
    ))
}
