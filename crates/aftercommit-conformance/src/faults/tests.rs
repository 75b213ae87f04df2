use std::cell::Cell;
use std::time::Duration;

use super::*;

/// A call that notes that it was made.
async fn call(script: &Script, made: &Cell<bool>) -> Result<u8, Injected> {
    let body = async {
        made.set(true);
        Ok(7)
    };
    script.across(Seam::Commit, body, |injected| injected).await
}

async fn outcome(number: usize, fault: Fault) -> (Option<Result<u8, Injected>>, bool) {
    let (script, made) = (Script::record().with(number, fault), Cell::new(false));
    let answer = tokio::time::timeout(Duration::from_secs(1), call(&script, &made)).await.ok();
    (answer, made.get())
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    use Fault::{Crash, Delay, Fail, LoseAnswer};
    use Injected::{AnswerLost, NotMade};
    assert_eq!(outcome(9, Crash).await, (Some(Ok(7)), true), "no such point");
    assert_eq!(outcome(0, Crash).await, (None, false));
    assert_eq!(outcome(1, Crash).await, (None, true));
    assert_eq!(outcome(0, Fail).await, (Some(Err(NotMade)), false));
    assert_eq!(outcome(1, Fail).await, (Some(Err(AnswerLost)), true));
    assert_eq!(outcome(0, LoseAnswer).await, (Some(Err(AnswerLost)), true));
    assert_eq!(outcome(1, LoseAnswer).await, (Some(Err(AnswerLost)), true));
    assert_eq!(outcome(0, Delay).await, (None, false));
    assert_eq!(outcome(1, Delay).await, (None, true));
}

#[tokio::test(start_paused = true)]
async fn a_dead_process_makes_no_more_calls() {
    let (script, made) = (Script::record().with(1, Fault::Crash), Cell::new(false));
    let crashed = tokio::select! {
        answer = call(&script, &made) => panic!("it is dead and answered {answer:?}"),
        point = script.crashed() => point,
    };
    assert_eq!(crashed, Point { number: 1, seam: Seam::Commit, side: Side::After });
    made.set(false);
    let later = tokio::time::timeout(Duration::from_secs(1), call(&script, &made)).await;
    assert!(later.is_err() && !made.get());
    assert_eq!(script.trace().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_delay_ends_when_it_is_released() {
    let (script, made) = (Script::record().with(0, Fault::Delay), Cell::new(false));
    let releasing = async {
        script.delayed().await;
        script.release();
    };
    let (answer, ()) = tokio::join!(call(&script, &made), releasing);
    assert_eq!(answer, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn the_nth_point_of_a_seam_has_its_fault() {
    let script = Script::record().at(Seam::Commit, Side::After, 1, Fault::LoseAnswer);
    let made = Cell::new(false);
    assert_eq!(call(&script, &made).await, Ok(7));
    assert_eq!(call(&script, &made).await, Err(Injected::AnswerLost));
    assert_eq!(call(&script, &made).await, Ok(7));
}
