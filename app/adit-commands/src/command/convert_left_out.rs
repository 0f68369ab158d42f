//! Configuration files in a build without the feature `convert`: those of adit alone.

use std::path::Path;

use adit_cli::Failure;
use adit_config::{Plan, Problem, Sources, SystemSources};

/// The hint for files of other programs.
const FORM: &str =
    "write the file in adit's own format (`adit help config`), or use a build with all features";

/// Returns the plan of a file.
pub(super) fn plan_from_file(path: &Path) -> Result<Plan, Failure> {
    Ok(plan_from_file_with(path, &SystemSources)?)
}

/// Returns the plan of a file, which `sources` read.
pub(super) fn plan_from_file_with(
    path: &Path,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("json" | "yaml" | "yml")) {
        let title = format!(
            "{}: this build of adit does not convert files of other programs: it was built without the feature \
             `convert`",
            path.display()
        );
        return Err(vec![Problem::without_place(title, FORM)]);
    }
    Plan::from_file_with(path, sources)
}
