use std::path::PathBuf;

use aftercommit_lab::{Experiment, LabError, Program, Report, Verdict, store};

use crate::args::LabArgs;
use crate::exit;
use crate::interrupt::interrupted;
use crate::progress::Progress;
use crate::say;

pub(crate) async fn run(args: LabArgs) -> Result<u8, LabError> {
    let interrupted = interrupted()?;
    let broker = args.broker.unwrap_or_else(|| args.product.url().to_owned());
    let scheme = broker.split_once(':').map_or("", |(scheme, _)| scheme);
    let schemes = args.product.schemes();
    if !schemes.contains(&scheme) {
        let wanted = schemes.join(": or ");
        return Err(LabError::Usage(format!("the broker's URL must begin with {wanted}: for this product")));
    }
    let parent = args.out.map_or_else(data_folder, Ok)?;
    // Found out now, not when there is a run to store.
    std::fs::create_dir_all(&parent).map_err(|error| LabError::Failed {
        what: format!("making the folder {} for copies of runs", parent.display()),
        source: Some(error.into()),
    })?;
    let experiment = Experiment {
        program: Program::this("role")?,
        broker,
        database: args.database,
        counter: args.counter.map(Into::into),
    };
    let report = experiment.consumer_crash(&Progress { lines: !args.json }, interrupted).await?;
    if args.json {
        say::out(report.card.to_json())
    } else {
        print(&report)
    }
    let stored = store(&report, &parent)?;
    say::err(format!("stored in {}", stored.display()));
    Ok(match report.card.verdict() {
        Verdict::Held => exit::OK,
        Verdict::Broken | Verdict::FailedAsItMust => exit::BROKEN,
        Verdict::Blind => exit::BLIND,
    })
}

fn print(report: &Report) {
    for assertion in &report.card.assertions {
        say::out(assertion);
    }
    say::out(format!("\n{}", report.card).trim_end());
}

/// As the XDG base directories have it: a relative path there does not count.
fn data_folder() -> Result<PathBuf, LabError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let data = data.ok_or_else(|| LabError::Usage("there is no home folder: say --out DIR".to_owned()))?;
    Ok(data.join("aftercommit/lab"))
}
