use aftercommit_lab::{Demo, Figures, LabError, Program};

use crate::args::{DemoArgs, Order};
use crate::exit;
use crate::interrupt::interrupted;
use crate::progress::Progress;
use crate::say;

pub(crate) async fn run(args: DemoArgs) -> Result<u8, LabError> {
    let interrupted = interrupted()?;
    let demo = Demo {
        program: Program::this("role")?,
        broker: args.broker,
        database: args.database,
        seed: args.seed,
        confirm_first: args.order == Order::ConfirmFirst,
    };
    let figures = demo.run(&Progress { lines: false }, interrupted).await?;
    if args.json {
        say::out(json(&figures))
    } else {
        print(&figures)
    }
    Ok(if figures.promise_held() { exit::OK } else { exit::BROKEN })
}

fn json(figures: &Figures) -> serde_json::Value {
    let mut object = serde_json::json!(figures);
    object["verdict"] = figures.verdict().into();
    object
}

fn print(figures: &Figures) {
    let rows = [
        ("published", figures.published_total, "messages, each confirmed by the broker"),
        ("ids", figures.unique_message_ids, "different orders among them"),
        ("crashes", figures.crashes, "consumer processes that ended with 137"),
        ("received", figures.received_total, "deliveries"),
        ("redelivered", figures.redelivered_count, "of them not the first of their message"),
        ("duplicates", figures.duplicates_observed, "of them known to the inbox, and skipped"),
        ("business rows", figures.business_rows, "in the database"),
        ("applied twice", figures.duplicates_applied, ""),
        ("lost", figures.lost, ""),
        ("left in queue", figures.queue_depth_after, ""),
    ];
    for (name, figure, what) in rows {
        say::out(format!("{name:14} {figure:5}  {what}").trim_end());
    }
    say::out(format!("{} (seed {}, {} ms)", figures.verdict(), figures.seed, figures.duration_ms));
}
