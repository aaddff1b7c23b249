//! Which modules of a model get adapters.

use regex::Regex;
use samara_model::{Config, Site};

use crate::TrainError;
use crate::config::TargetModules;

/// The sites that are chosen, layer by layer.
///
/// # Errors
/// [`TrainError::NoTargets`] where a name or the expression matches none, with the names that there are.
pub fn sites(targets: &TargetModules, config: &Config) -> Result<Vec<Site>, TrainError> {
    let all = Site::all(config);
    let missing = |what: &str| TrainError::NoTargets { what: what.to_owned(), names: names(&all) };
    let chosen: Vec<Site> = match targets {
        TargetModules::AllLinear => all.clone(),
        TargetModules::Names(wanted) => {
            let is = |site: &Site, name: &str| site.path == name || site.path.ends_with(&format!(".{name}"));
            if let Some(name) = wanted.iter().find(|name| !all.iter().any(|site| is(site, name))) {
                return Err(missing(name));
            }
            all.iter().filter(|site| wanted.iter().any(|name| is(site, name))).cloned().collect()
        }
        TargetModules::Regex(pattern) => {
            // The configuration has checked it; one that cannot be built matches nothing.
            let regex = Regex::new(&format!("^(?:{pattern})$")).map_err(|_| missing(pattern))?;
            all.iter().filter(|site| regex.is_match(&site.path)).cloned().collect()
        }
    };
    match (chosen.is_empty(), targets) {
        (false, _) => Ok(chosen),
        (true, TargetModules::Regex(pattern)) => Err(missing(pattern)),
        (true, _) => Err(missing("all-linear")),
    }
}

/// What there is to choose from, each name once.
pub fn names(sites: &[Site]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for site in sites {
        if !names.iter().any(|name| name == site.name()) {
            names.push(site.name().to_owned());
        }
    }
    names
}
