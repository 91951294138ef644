//! Finds patchright's driver: the folder of its Python package with a `node` and a `package/cli.js`, in a supported
//! version.
//!
//! Nothing is fetched or started here. The driver's protocol changes with its version and is documented only by its
//! code: so only the supported version is accepted.

use crate::error::BrowserError;
use serde::Deserialize;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names the folder.
pub(crate) const VARIABLE: &str = "PDPP_PATCHRIGHT_DRIVER";
/// The supported version; the last number may be any.
const SPOKEN: &str = "1.64.";
/// How to install it.
const GET: &str = "pip install 'patchright==1.64.*'";
/// Its `package.json` has about a thousand bytes.
const PACKAGE_BYTES_MAX: u64 = 64 * 1024;

/// A supported driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    pub(crate) node: PathBuf,
    pub(crate) script: PathBuf,
    pub(crate) version: String,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Environment that says where Python keeps packages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) path: Option<String>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) virtual_env: Option<PathBuf>,
}

impl Surroundings {
    pub(crate) fn of_this_process() -> Self {
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self { path: std::env::var("PATH").ok(), home: folder("HOME"), virtual_env: folder("VIRTUAL_ENV") }
    }
}

/// The named driver, or the first one found. `None` when none was named and none found.
pub(crate) fn look_for(named: Option<&Path>, around: &Surroundings) -> Result<Option<Driver>, BrowserError> {
    if let Some(folder) = named {
        // A named driver that does not fit is never replaced by another.
        return Driver::in_folder(folder).map(Some);
    }
    let found = places(around).into_iter().find(|folder| folder.is_dir());
    found.map(|folder| Driver::in_folder(&folder)).transpose()
}

/// The error for a missing driver.
pub(crate) fn not_found() -> BrowserError {
    BrowserError::Driver {
        why: "it is not where Python keeps its packages".to_owned(),
        remedy: format!("install it ({GET}), or set {VARIABLE} to its folder `driver`"),
    }
}

impl Driver {
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, BrowserError> {
        let unfit = |why: String| BrowserError::Driver {
            why,
            remedy: format!("set {VARIABLE} to a folder that is one, or {GET}"),
        };
        let (node, package) = (folder.join("node"), folder.join("package"));
        let script = package.join("cli.js");
        if let Some(missing) = [&node, &script].into_iter().find(|path| !path.is_file()) {
            return Err(unfit(format!("there is no {}", missing.display())));
        }
        let text = read_bounded(&package.join("package.json"));
        let Ok(Package { name, version }) = serde_json::from_slice(&text) else {
            return Err(unfit(format!(
                "{} is not a valid package description",
                package.join("package.json").display()
            )));
        };
        let (name, version) = (shown(&name), shown(&version));
        if name != "patchright-core" {
            return Err(unfit(format!("{} is {name}", folder.display())));
        }
        if !version.starts_with(SPOKEN) {
            let why = format!("{} is version {version}; supported: {SPOKEN}*", folder.display());
            return Err(unfit(why));
        }
        Ok(Self { node, script, version })
    }
}

/// A text from a file, safe to show.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

fn read_bounded(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(PACKAGE_BYTES_MAX).read_to_end(&mut text));
    read.map_or_else(|_| Vec::new(), |_| text)
}

/// Possible locations of `patchright/driver`, nearest first: a virtual environment, the owner's packages, those of
/// each `python3` in the PATH, those of the system.
fn places(around: &Surroundings) -> Vec<PathBuf> {
    let programs =
        around.path.as_deref().into_iter().flat_map(std::env::split_paths).map(|folder| folder.join("python3"));
    // A link leads to the Python whose packages they are; the link itself is where a virtual environment has its own.
    let of_programs = programs.filter(|program| program.is_file()).flat_map(|program| {
        let real = fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        [program, real].into_iter().filter_map(|program| Some(program.parent()?.parent()?.to_owned()))
    });
    let of_owner = around.virtual_env.clone().into_iter().chain(around.home.as_ref().map(|home| home.join(".local")));
    let prefixes = of_owner.chain(of_programs).chain(["/usr/local", "/usr"].map(PathBuf::from));
    prefixes.flat_map(|prefix| packages(&prefix)).map(|packages| packages.join("patchright/driver")).collect()
}

/// Package folders below a prefix: `lib/python3.11/site-packages`, or Debian's names.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    let is_python = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    };
    let mut versions = entries.flatten().map(|entry| entry.path()).filter(is_python).collect::<Vec<_>>();
    // Directory order is random.
    versions.sort();
    versions.iter().rev().flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a driver.
    fn make(folder: &Path, name: &str, version: &str) {
        fs::create_dir_all(folder.join("package")).unwrap();
        fs::write(folder.join("node"), "").unwrap();
        fs::write(folder.join("package/cli.js"), "").unwrap();
        let text = format!(r#"{{"name": "{name}", "version": "{version}"}}"#);
        fs::write(folder.join("package/package.json"), text).unwrap();
    }

    #[test]
    fn only_a_driver_whose_words_we_speak_is_taken_and_the_others_are_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let refused = || Driver::in_folder(folder.path()).unwrap_err().to_string();
        assert!(refused().contains("there is no") && refused().contains("PDPP_PATCHRIGHT_DRIVER"), "{}", refused());
        make(folder.path(), "playwright-core", "1.64.0");
        assert!(refused().contains("is playwright-core"), "{}", refused());
        for other in ["1.63.9", "1.640.0", "2.0.0", ""] {
            make(folder.path(), "patchright-core", other);
            assert!(refused().contains("supported: 1.64.*"), "{}", refused());
        }
        fs::write(folder.path().join("package/package.json"), "[").unwrap();
        assert!(refused().contains("is not a valid package description"), "{}", refused());
        make(folder.path(), "patchright-core", "1.64.7");
        assert_eq!(Driver::in_folder(folder.path()).unwrap().version, "1.64.7");
    }

    #[test]
    fn a_driver_is_found_where_python_keeps_its_packages_and_a_named_one_is_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let driver = |prefix: &str, python: &str| {
            root.join(prefix).join("lib").join(python).join("site-packages/patchright/driver")
        };
        fs::create_dir_all(root.join("opt/python/bin")).unwrap();
        fs::write(root.join("opt/python/bin/python3"), "").unwrap();
        let mut around =
            Surroundings { path: root.join("opt/python/bin").to_str().map(str::to_owned), ..Surroundings::default() };
        make(&driver("opt/python", "python3.11"), "patchright-core", "1.64.1");
        make(&driver("home/.local", "python3.9"), "patchright-core", "1.64.2");
        make(&driver("venv", "python3.12"), "patchright-core", "1.64.3");
        let version = |around: &Surroundings| look_for(None, around).unwrap().unwrap().version;
        assert_eq!(version(&around), "1.64.1");
        around.home = Some(root.join("home"));
        assert_eq!(version(&around), "1.64.2");
        around.virtual_env = Some(root.join("venv"));
        assert_eq!(version(&around), "1.64.3");
        assert_eq!(look_for(Some(&driver("opt/python", "python3.11")), &around).unwrap().unwrap().version, "1.64.1");
        assert!(look_for(Some(&root.join("nowhere")), &around).is_err());
        // A driver that is found and does not fit is reported, not skipped.
        make(&driver("venv", "python3.12"), "patchright-core", "1.50.0");
        assert!(look_for(None, &around).is_err());
    }
}
