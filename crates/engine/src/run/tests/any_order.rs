//! Whatever a connector says in whatever order, cut off anywhere.

use super::*;

/// A line, or something that happens to the run.
fn action() -> impl Strategy<Value = String> {
    let stream = prop_oneof![6 => Just("trips"), 3 => Just("details"), 3 => Just("photos"), 1 => Just("mail")];
    let line = (stream, 0_u64..5, 0_u8..14).prop_map(|(stream, n, kind)| match kind {
        0..=3 => record(stream, &n.to_string()),
        4 | 5 => state(stream, n),
        6 | 7 => slice_state(stream, n),
        8 => gap(stream, "trips", &n.to_string(), "retry_exhausted"),
        9 => coverage(&["0", "1"], &["0"], &["1"]),
        10 => QUESTION.to_owned(),
        11 => r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p","reference_only":true}"#.to_owned(),
        12 => done("succeeded", n),
        _ => failed("stream_collection_failed", n),
    });
    prop_oneof![
        12 => line,
        3 => Just("step".to_owned()),
        1 => Just("cancel".to_owned()),
        1 => Just("exit".to_owned()),
        1 => Just("wait".to_owned()),
        1 => Just("store failed".to_owned()),
        1 => Just("answer".to_owned()),
        1 => Just("broken".to_owned()),
    ]
}

fn act(world: &mut World<Steady>, action: &str) {
    match action {
        "step" => {
            world.step();
        }
        "cancel" => world.run.handle_cancel(world.now),
        "exit" => world.run.handle_exit(Exit::Code(0), world.now),
        "wait" => {
            world.now.time = world.now.time + Duration::from_secs(20);
            world.run.handle_timeout(world.now);
        }
        "store failed" => world.run.handle_store_failed(world.now),
        "answer" => {
            world.run.handle_answer(answer("q1", InteractionStatus::Success), world.now);
        }
        line => {
            world.line(line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_run_ends_once_and_its_cursor_is_never_past_what_is_durable(
        actions in proptest::collection::vec(action(), 0..40), effects_max in 1_usize..9,
    ) {
        let mut config = config::<Steady>(ALL);
        config.effects_max = effects_max;
        let mut world = World::new(config);
        world.eager = false;
        for action in &actions {
            act(&mut world, action);
            // A time that was waited for is over then: a driver never spins.
            if let Some(time) = world.run.poll_timeout(world.now)
                && action == "wait"
            {
                world.now.time = world.now.time.max(time);
                world.run.handle_timeout(world.now);
                prop_assert!(world.run.poll_timeout(world.now).is_none_or(|next| next > world.now.time));
            }
            prop_assert!(world.run.effects.len() <= effects_max + 6, "{} effects wait", world.run.effects.len());
        }
        world.run.handle_exit(Exit::Code(0), world.now);
        world.settle();
        world.pass(60_000).pass(60_000).pass(60_000);
        prop_assert_eq!(world.finished.len(), 1);
        prop_assert_eq!(world.run.outcome(), world.finished.first());
        let before = (world.store.slices, world.store.cursors.clone());
        world.lines(&[&record("photos", "z"), &slice_state("photos", 9), &done("succeeded", 1)]);
        world.settle();
        prop_assert_eq!(world.finished.len(), 1);
        prop_assert_eq!(before, (world.store.slices, world.store.cursors.clone()), "nothing after the end");
        let outcome = world.outcome();
        if !matches!(outcome.reason, TerminalReason::Succeeded | TerminalReason::StreamCollectionFailed) {
            prop_assert_eq!(&outcome.committed, &Vec::new());
        }
    }

    #[test]
    fn no_record_behind_a_committed_cursor_is_lost_wherever_the_run_is_cut_off(
        slices in proptest::collection::vec((0_u64..5, any::<bool>()), 1..20), carried_out in 0_usize..30,
    ) {
        let mut config = config::<Steady>(&["photos"]);
        config.effects_max = 100;
        let mut world = World::new(config);
        world.eager = false;
        let (mut count, mut facts) = (0, Vec::new());
        for (slice, (records, whole)) in slices.into_iter().enumerate() {
            for _ in 0..records {
                count += 1;
                let (stream, key) = ("photos".to_owned(), count.to_string());
                world.line(&record(&stream, &key));
                let covered_by = CommitSeq::new(slice as u64 + 1);
                facts.push(Fact::Listed { stream, key, covered_by, position: 0 });
            }
            world.line(&if whole { slice_state("photos", count) } else { state("photos", count) });
        }
        world.line(&done("succeeded", count));
        for _ in 0..carried_out {
            world.step();
            prop_assert_eq!(promises::a1_no_record_is_lost(&world.store, &facts), Ok(()));
            prop_assert_eq!(promises::a3_checkpoint_is_the_last_whole_slice(&world.store, &["photos"]), Ok(()));
        }
        prop_assert_eq!(world.refused.len(), 0);
    }
}
