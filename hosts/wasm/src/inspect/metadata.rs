//! What a file says of its making: custom sections that tools for WebAssembly share.

use wasmparser::{ComponentName, CustomSectionReader, KnownCustom, Name, ProducersSectionReader};

/// A language, a tool or a kit, with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// For instance `Rust`.
    pub name: String,
    /// For instance `1.95.0`; may be empty.
    pub version: String,
}

/// What a file says of itself in its custom sections. Nobody checks that it is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Who made it.
    pub authors: Option<String>,
    /// An SPDX expression.
    pub licenses: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// Where more is to be read.
    pub homepage: Option<String>,
    /// Revision of the source.
    pub revision: Option<String>,
    /// Languages it was written in.
    pub languages: Vec<Tool>,
    /// Tools that it went through.
    pub processed_by: Vec<Tool>,
    /// Kits that it was made with.
    pub sdks: Vec<Tool>,
}

impl Metadata {
    /// Takes what a custom section tells. What a file was made with is collected at every depth, the rest at the outermost.
    pub(super) fn take(&mut self, section: &CustomSectionReader<'_>, depth: u32) {
        match section.as_known() {
            KnownCustom::Producers(producers) => self.take_producers(&producers),
            _ if depth > 0 => {}
            KnownCustom::ComponentName(names) => {
                for name in names.into_iter().map_while(Result::ok) {
                    if let ComponentName::Component { name, .. } = name {
                        self.name = Some(name.to_owned());
                    }
                }
            }
            KnownCustom::Name(names) => {
                for name in names.into_iter().map_while(Result::ok) {
                    if let Name::Module { name, .. } = name {
                        self.name = Some(name.to_owned());
                    }
                }
            }
            _ => {
                let field = match section.name() {
                    "version" => &mut self.version,
                    "description" => &mut self.description,
                    "authors" => &mut self.authors,
                    "licenses" => &mut self.licenses,
                    "source" => &mut self.source,
                    "homepage" => &mut self.homepage,
                    "revision" => &mut self.revision,
                    _ => return,
                };
                *field = str::from_utf8(section.data()).ok().map(str::to_owned);
            }
        }
    }

    fn take_producers(&mut self, producers: &ProducersSectionReader<'_>) {
        for field in producers.clone().into_iter().map_while(Result::ok) {
            let tools = match field.name {
                "language" => &mut self.languages,
                "processed-by" => &mut self.processed_by,
                _ => &mut self.sdks,
            };
            for value in field.values.into_iter().map_while(Result::ok) {
                let tool = Tool { name: value.name.to_owned(), version: value.version.to_owned() };
                if !tools.contains(&tool) {
                    tools.push(tool);
                }
            }
        }
    }
}
