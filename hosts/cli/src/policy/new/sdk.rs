//! Where a policy in Rust takes the SDK from.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};

/// The crates that a policy depends on, from the root of a checkout: the SDK, and the host of its unit tests.
const CRATES: [&str; 2] = ["policies/sdk", "policies/testing"];

/// Where the SDK is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    /// In a checkout of Reprise, the absolute path of whose root this is.
    Checkout(PathBuf),
    /// In a repository that cargo clones.
    Repository(String),
}

impl Sdk {
    /// What is named, or the checkout that `folder`, this directory or this executable lies in.
    pub fn find(named: Option<&str>, folder: &Path) -> anyhow::Result<Self> {
        match named {
            Some(url) if url.contains("://") => Ok(Self::Repository(url.to_owned())),
            Some(path) => {
                let found = Path::new(path).canonicalize().with_context(|| format!("looking for the SDK in {path}"))?;
                let root = found.ancestors().take(3).find(|root| is_checkout(root));
                root.map(|root| Self::Checkout(root.to_owned())).ok_or_else(|| {
                    anyhow!("{path} is no checkout of Reprise: policies/sdk and policies/testing are not in it")
                })
            }
            None => Self::around(folder),
        }
    }

    fn around(folder: &Path) -> anyhow::Result<Self> {
        let here = env::current_dir().context("finding out the current directory")?;
        let executable = env::current_exe().and_then(|path| path.canonicalize()).ok();
        let starts = [Some(here.join(folder)), Some(here), executable];
        for start in starts.into_iter().flatten() {
            // The folder is not there yet: it lies in the first that is.
            let start = start.ancestors().find_map(|path| path.canonicalize().ok());
            if let Some(root) = start.as_deref().and_then(|start| start.ancestors().find(|root| is_checkout(root))) {
                return Ok(Self::Checkout(root.to_owned()));
            }
        }
        bail!(
            "no checkout of Reprise lies around the new folder or this command, and a policy in Rust takes the SDK from one: \
             name it with --sdk PATH, or the URL of its repository"
        )
    }

    /// What Cargo.toml of a policy in `folder`, which exists, says of the SDK and of the host of its unit tests.
    pub fn dependencies(&self, folder: &Path) -> anyhow::Result<[String; 2]> {
        match self {
            Self::Repository(url) => {
                let dependency = format!("{{ git = {} }}", quoted(url));
                Ok([dependency.clone(), dependency])
            }
            Self::Checkout(root) => {
                let folder = folder.canonicalize().with_context(|| format!("following {}", folder.display()))?;
                // Within a checkout the way is relative, so that it may be moved as a whole.
                let way = folder.strip_prefix(root).map(|below| below.components().map(|_| "..").collect::<PathBuf>());
                let base = way.unwrap_or_else(|_| root.clone());
                let [sdk, testing] = CRATES.map(|name| {
                    let path = base.join(name);
                    let path =
                        path.to_str().ok_or_else(|| anyhow!("{} is no UTF-8, as Cargo.toml is", path.display()))?;
                    Ok(format!("{{ path = {} }}", quoted(path)))
                });
                sdk.and_then(|sdk| Ok([sdk, testing?]))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn is_checkout(root: &Path) -> bool {
    CRATES.iter().all(|name| {
        let manifest = fs::read_to_string(root.join(name).join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains("name = \"reprise-policy-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, package) in CRATES.into_iter().zip(["reprise-policy-sdk", "reprise-policy-testing"]) {
            fs::create_dir_all(root.path().join(name)).unwrap();
            fs::write(root.path().join(name).join("Cargo.toml"), format!("[package]\nname = \"{package}\"\n")).unwrap();
        }
        root
    }

    #[test]
    fn a_folder_outside_does_not_get_a_way_that_leads_nowhere() {
        let (root, outside) = (checkout(), tempfile::tempdir().unwrap());
        let named = Sdk::find(root.path().to_str(), outside.path()).unwrap();
        let [sdk, testing] = named.dependencies(outside.path()).unwrap();
        let absolute = root.path().canonicalize().unwrap();
        assert_eq!(sdk, format!("{{ path = \"{}/policies/sdk\" }}", absolute.display()));
        assert_eq!(testing, format!("{{ path = \"{}/policies/testing\" }}", absolute.display()));
        // The crate itself may be named, too.
        assert_eq!(Sdk::find(root.path().join(CRATES[0]).to_str(), outside.path()).unwrap(), named);
    }

    #[test]
    fn a_folder_inside_does_not_depend_on_where_the_checkout_lies() {
        let root = checkout();
        let folder = root.path().join("policies/mine");
        let found = Sdk::find(None, &folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(found.dependencies(&folder).unwrap()[0], "{ path = \"../../policies/sdk\" }");
    }

    #[test]
    fn what_is_no_checkout_is_not_taken_for_one() {
        let empty = tempfile::tempdir().unwrap();
        for (named, says) in [(empty.path().to_str().unwrap(), "no checkout"), ("/no/such/place", "No such file")] {
            let error = format!("{:#}", Sdk::find(Some(named), empty.path()).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
        let url = Sdk::find(Some("https://example.org/reprise"), empty.path()).unwrap();
        assert_eq!(url.dependencies(empty.path()).unwrap()[1], "{ git = \"https://example.org/reprise\" }");
    }
}
