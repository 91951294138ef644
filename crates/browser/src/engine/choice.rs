//! Selects the engine of a browser: by request, build features, and installed driver.

#[cfg(feature = "patchright")]
use crate::engine::patchright::{
    self,
    driver::{self, Driver, Surroundings},
};
use crate::engine::pipe;
use crate::engine::{Deadline, Engine, EngineKind};
use crate::error::BrowserError;
use crate::notice::Notice;
use crate::process::arguments::Start;
use crate::process::program;
use crate::request::{BrowserRequest, EngineChoice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A selected engine, before it is started.
#[derive(Debug)]
pub(crate) enum Chosen {
    Pipe,
    #[cfg(feature = "patchright")]
    Patchright(Driver),
}

/// The browser and engine that a request would use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The browser.
    pub program: PathBuf,
    /// Its engine.
    pub engine: EngineKind,
    /// Note for the owner about the choice.
    pub notice: Option<Notice>,
}

/// Resolves a request. Nothing is started.
///
/// # Errors
///
/// There is no browser, the requested engine is not built in, or its driver is unusable.
pub fn outlook(request: &BrowserRequest) -> Result<Outlook, BrowserError> {
    let program = program::find(request.program.as_deref(), std::env::var("PATH").ok().as_deref())?;
    let (chosen, notice) = choose(request)?;
    Ok(Outlook { program, engine: chosen.kind(), notice })
}

/// The engine, and a note for the owner.
#[cfg(feature = "patchright")]
pub(crate) fn choose(request: &BrowserRequest) -> Result<(Chosen, Option<Notice>), BrowserError> {
    let look = || driver::look_for(request.driver.as_deref(), &Surroundings::of_this_process());
    match request.engine {
        EngineChoice::Pipe => Ok((Chosen::Pipe, None)),
        EngineChoice::Patchright => {
            look()?.map(|driver| (Chosen::Patchright(driver), None)).ok_or_else(driver::not_found)
        }
        EngineChoice::Auto => match look() {
            Ok(Some(driver)) => Ok((Chosen::Patchright(driver), None)),
            Ok(None) => Ok((Chosen::Pipe, None)),
            // A driver named by the owner must work. One that was merely found need not.
            Err(error) if request.driver.is_some() => Err(error),
            Err(error) => Ok((Chosen::Pipe, Some(Notice::DriverUnfit(error.to_string())))),
        },
    }
}

/// The engine, and a note for the owner.
#[cfg(not(feature = "patchright"))]
pub(crate) fn choose(request: &BrowserRequest) -> Result<(Chosen, Option<Notice>), BrowserError> {
    const NOT_HERE: &str = "this program was built without it; set it to pipe, or build with the feature patchright";
    match (request.engine, &request.driver) {
        (EngineChoice::Patchright, _) => Err(BrowserError::Setting {
            name: "PDPP_BROWSER_ENGINE",
            value: "patchright".to_owned(),
            allowed: NOT_HERE,
        }),
        (EngineChoice::Auto, Some(named)) => Ok((
            Chosen::Pipe,
            Some(Notice::DriverUnfit(format!("PDPP_PATCHRIGHT_DRIVER is {}, and {NOT_HERE}", named.display()))),
        )),
        (EngineChoice::Auto | EngineChoice::Pipe, _) => Ok((Chosen::Pipe, None)),
    }
}

impl Chosen {
    const fn kind(&self) -> EngineKind {
        match self {
            Self::Pipe => EngineKind::Pipe,
            #[cfg(feature = "patchright")]
            Self::Patchright(_) => EngineKind::Patchright,
        }
    }

    pub(crate) fn start(
        &self,
        program: &Path,
        start: Start<'_>,
        downloads: &Path,
        deadline: Deadline,
    ) -> Result<Arc<dyn Engine>, BrowserError> {
        match self {
            Self::Pipe => Ok(Arc::new(pipe::start(program, start, downloads, deadline)?)),
            #[cfg(feature = "patchright")]
            Self::Patchright(driver) => Ok(Arc::new(patchright::start(driver, program, start, downloads, deadline)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(engine: EngineChoice, driver: Option<&str>) -> BrowserRequest {
        let set = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let mut request = BrowserRequest::new("shop", None, &set).unwrap();
        (request.engine, request.driver) = (engine, driver.map(Into::into));
        request
    }

    fn engine_of(request: &BrowserRequest) -> Result<EngineKind, BrowserError> {
        choose(request).map(|(chosen, _)| chosen.kind())
    }

    #[test]
    fn what_is_asked_for_by_name_is_never_replaced() {
        assert_eq!(engine_of(&request(EngineChoice::Pipe, Some("/nowhere"))).unwrap(), EngineKind::Pipe);
        let error = engine_of(&request(EngineChoice::Patchright, Some("/nowhere"))).unwrap_err().to_string();
        let named = if cfg!(feature = "patchright") { "/nowhere/node" } else { "built without" };
        assert!(error.contains(named), "{error}");
    }

    #[test]
    #[cfg(feature = "patchright")]
    fn auto_takes_the_driver_that_is_there_and_says_what_is_wrong_with_one_that_was_named() {
        let folder = tempfile::tempdir().unwrap();
        let named = request(EngineChoice::Auto, folder.path().to_str());
        assert!(matches!(engine_of(&named), Err(BrowserError::Driver { .. })), "an empty folder is none");
        std::fs::create_dir(folder.path().join("package")).unwrap();
        for file in ["node", "package/cli.js"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let package = folder.path().join("package/package.json");
        std::fs::write(package, r#"{"name": "patchright-core", "version": "1.64.2"}"#).unwrap();
        assert_eq!(engine_of(&named).unwrap(), EngineKind::Patchright);
    }

    #[test]
    #[cfg(not(feature = "patchright"))]
    fn auto_without_the_feature_says_that_a_named_driver_is_not_used() {
        assert!(matches!(choose(&request(EngineChoice::Auto, None)), Ok((Chosen::Pipe, None))));
        let (_, notice) = choose(&request(EngineChoice::Auto, Some("/driver"))).unwrap();
        assert!(notice.unwrap().to_string().contains("/driver"));
    }
}
