//! START: what a connector is told first.

use crate::request::RunRequest;
use gleaner_engine::{RunPurpose, Track, WallTime, page_bytes};
use gleaner_protocol::{RuntimeMessage, Start};
use gleaner_store::{Session, Store, StoreError};

/// The message, as a line. Leases the first page of gaps.
pub(crate) fn message<T: Track>(
    store: &mut Store,
    session: &Session<T>,
    request: &RunRequest,
    now: WallTime,
) -> Result<Vec<u8>, StoreError> {
    let in_scope = |stream: &str| request.scope.asked.stream(stream).is_some();
    let streams = request.scope.asked.streams().iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
    let state = session.state().filter(|cursor| in_scope(cursor.stream()));
    let state = state.map(|cursor| (cursor.stream().to_owned(), cursor.token().clone())).collect::<Vec<_>>();
    let start = Start {
        run_id: session.run_id().as_str().to_owned(),
        collection_mode: request.mode,
        scope: request.scope.asked.clone(),
        // Some connectors take an empty object for "nothing stored", others only null.
        state: (!state.is_empty()).then_some(state),
        bindings: request.bindings.clone(),
        detail_gaps: store.lease_gaps_page(session, &streams, page_bytes(None), now)?,
        recovery_only: request.purpose == RunPurpose::RecoveryOnly,
        run_budget: request.budget,
    };
    let mut line = Vec::new();
    RuntimeMessage::Start(Box::new(start)).encode(&mut line);
    Ok(line)
}
