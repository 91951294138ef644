//! The run machine in front of a store in memory. Each test is lines in, durable state out.

mod any_order;
mod breaches;
mod commits;
mod endings;
mod gaps_and_records;
mod incomplete;
mod questions;

use crate::testing::promises::{self, Fact};
use crate::testing::{World, config, coverage, done, failed, gap, record, slice_state, state};
use crate::{
    AnswerTaken, CatchUp, CommitSeq, Effect, Exit, OwnerEffect, ProcessEffect, Refusal, Run, Steady, StoreEffect,
    Track, WallTime, WithheldBecause,
};
use gleaner_protocol::{
    InteractionResponse, InteractionStatus, PressureReason, RuntimeMessage, TerminalReason, ViolationCode,
};
use proptest::prelude::*;
use std::time::Duration;

const ALL: &[&str] = &["trips", "comments", "details", "photos"];
const QUESTION: &str =
    r#"{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"code?","timeout_seconds":60}"#;

fn world(streams: &[&str]) -> World<Steady> {
    World::new(config(streams))
}

/// Lines that end a run with a violation, and the stream and key that it names.
fn check_violation(streams: &[&str], lines: &[&str], code: ViolationCode) -> World<Steady> {
    let mut world = world(streams);
    world.exit = Some(Exit::Signal(15));
    world.lines(lines);
    let outcome = world.outcome();
    assert_eq!(outcome.violation.as_ref().map(|violation| violation.code), Some(code), "{lines:?}");
    assert_eq!(outcome.reason, TerminalReason::ProtocolViolation);
    assert!(world.log.contains(&"stop"));
    assert!(!world.log.contains(&"commit"), "a violation commits nothing");
    world
}

fn answer(id: &str, status: InteractionStatus) -> InteractionResponse {
    InteractionResponse { request_id: id.to_owned(), status, data: None }
}
