//! What was found, for a person and for a program.

use reprise::{
    PolicyDescription, PolicyKind,
    wasm::{Form, Metadata, Tool},
};
use serde_json::{Value, json};

use super::{super::text::shown, Findings};
use crate::figures::{grouped, human_bytes};

impl Findings {
    /// One object. Names of keys do not change; what is not known is null.
    pub fn json(&self) -> Value {
        let Self { origin, inspection, description, refused, .. } = self;
        let Metadata { name, version, description: about, authors, licenses, source, homepage, revision, .. } =
            &inspection.metadata;
        json!({
            "origin": origin,
            "form": form(inspection.form),
            "bytes": inspection.bytes,
            "digest": inspection.digest.to_string(),
            "pin": self.pin(),
            "world": inspection.world(),
            "contract": inspection.contract,
            "profile": inspection.profile.as_ref().ok().map(|profile| profile.name()),
            "imports": inspection.imports,
            "exports": inspection.exports,
            "modules": inspection.modules,
            "memory_bytes": inspection.memory_bytes,
            "metadata": {
                "name": name, "version": version, "description": about, "authors": authors, "licenses": licenses,
                "source": source, "homepage": homepage, "revision": revision,
                "languages": tools_json(&inspection.metadata.languages),
                "processed_by": tools_json(&inspection.metadata.processed_by),
                "sdks": tools_json(&inspection.metadata.sdks),
            },
            "policy": description.as_ref().map(description_json),
            "refused": refused,
        })
    }

    /// The name that it is pinned under, and its digest; `None` of what is no component.
    fn pin(&self) -> Option<String> {
        if self.inspection.form != Form::Component {
            return None;
        }
        let name = self.description.as_ref().map_or(&self.file_name, |description| &description.name);
        Some(format!("{}={}", shown(name), self.inspection.digest))
    }

    /// Lines for a person.
    pub fn table(&self) -> String {
        let Self { origin, inspection, description, refused, .. } = self;
        let mut lines = match description {
            Some(description) => described(description),
            None => vec![format!("{origin}: no policy that can be loaded")],
        };
        if let Some(reason) = refused {
            lines.push(format!("REFUSED: {reason}"));
        }
        lines.push(String::new());
        let bytes = inspection.bytes as u64;
        let size = format!("{} bytes ({})", grouped(bytes), human_bytes(bytes));
        let mut row = |label: &str, text: String| lines.push(format!("{label:<12}{text}"));
        row("file", format!("{origin}: {}, {size}", form(inspection.form)));
        let world = inspection.world().map_or_else(|| none_or(inspection.contract.as_deref()), str::to_owned);
        row("world", world);
        row(
            "profile",
            inspection.profile.as_ref().map_or_else(|reason| format!("none: {}", shown(reason)), ToString::to_string),
        );
        for (label, names) in [("imports", &inspection.imports), ("exports", &inspection.exports)] {
            let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
            row(label, if names.is_empty() { "nothing".to_owned() } else { names.join(&format!("\n{:<12}", "")) });
        }
        let (modules, memory) = (u64::from(inspection.modules), human_bytes(inspection.memory_bytes));
        row("modules", format!("{}, with {memory} of memory at the start", grouped(modules)));
        for (label, text) in said(&inspection.metadata) {
            row(label, text);
        }
        row("digest", inspection.digest.to_string());
        if let Some(pin) = self.pin()
            && let Some((name, digest)) = pin.rsplit_once('=')
        {
            row("pin", format!("pins = {{ {} = \"{digest}\" }}", toml_key(name)));
            row("", format!("--pin {pin}"));
        }
        lines.join("\n") + "\n"
    }
}

/// A name as the key of a table.
fn toml_key(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_bare { name.to_owned() } else { toml::Value::from(name).to_string() }
}

fn none_or(contract: Option<&str>) -> String {
    match contract {
        Some(version) => format!("none that can be loaded here; its contract is reprise:policy@{}", shown(version)),
        None => "none of reprise:policy".to_owned(),
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Module => "core module",
        Form::Component => "component",
    }
}

/// What a policy decides, in a few words.
pub(crate) fn decides(description: &PolicyDescription) -> &'static str {
    match description.kind {
        PolicyKind::Cache if description.admission => "eviction, with admission",
        PolicyKind::Cache => "eviction",
        PolicyKind::Checkpoint => "checkpoints",
    }
}

/// Name, version, kind and settings.
fn described(description: &PolicyDescription) -> Vec<String> {
    let PolicyDescription { name, version, settings, .. } = description;
    let mut lines = vec![format!("{} {}: {}", shown(name), shown(version), decides(description))];
    if settings.is_empty() {
        lines.push("no settings".to_owned());
    }
    lines.extend(settings.iter().map(|setting| {
        let (key, help) = (shown(&setting.key), shown(&setting.help));
        format!("  {key}={} ({} to {}): {help}", setting.default, setting.min, setting.max)
    }));
    lines
}

fn description_json(description: &PolicyDescription) -> Value {
    let PolicyDescription { name, version, kind, admission, state_schema, settings } = description;
    let settings = settings.iter().map(|setting| {
        json!({
            "key": setting.key, "help": setting.help, "default": setting.default, "min": setting.min, "max": setting.max,
        })
    });
    json!({
        "name": name,
        "version": version,
        "kind": kind_name(*kind),
        "admission": admission,
        "state_schema": state_schema,
        "settings": settings.collect::<Vec<_>>(),
    })
}

/// A kind as a program reads it.
pub(crate) fn kind_name(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Cache => "cache",
        PolicyKind::Checkpoint => "checkpoint",
    }
}

/// What a file says of its making, as far as it does.
fn said(metadata: &Metadata) -> Vec<(&'static str, String)> {
    let versioned = match (&metadata.name, &metadata.version) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, version) => name.as_ref().or(version.as_ref()).cloned(),
    };
    let tools = |tools: &[Tool]| {
        let tools: Vec<String> =
            tools.iter().map(|tool| format!("{} {}", tool.name, tool.version).trim().to_owned()).collect();
        (!tools.is_empty()).then(|| tools.join(", "))
    };
    let rows = [
        ("component", versioned),
        ("about", metadata.description.clone()),
        ("authors", metadata.authors.clone()),
        ("licence", metadata.licenses.clone()),
        ("source", metadata.source.clone()),
        ("revision", metadata.revision.clone()),
        ("homepage", metadata.homepage.clone()),
        ("language", tools(&metadata.languages)),
        ("tools", tools(&metadata.processed_by)),
        ("kit", tools(&metadata.sdks)),
    ];
    rows.into_iter().filter_map(|(label, text)| Some((label, shown(&text?)))).collect()
}

fn tools_json(tools: &[Tool]) -> Vec<Value> {
    tools.iter().map(|tool| json!({ "name": tool.name, "version": tool.version })).collect()
}
