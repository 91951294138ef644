//! Dependencies between the checkpoints of streams, and a check for cycles.
//!
//! Why a search over the whole graph: a check of direct pairs misses a cycle of three, and no checkpoint in a cycle
//! would ever be committed, which looks like a connector without progress.

use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;
use super::stream::StreamManifest;
use std::collections::BTreeMap;

/// The checkpoint that a stream depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Checkpoint {
    /// Its own.
    #[default]
    Own,
    /// The checkpoint of this stream.
    StateStream(String),
    /// The checkpoints of these streams wait for its coverage report.
    ParentStreams(Vec<String>),
}

/// Required coverage of a stream with `state_stream`.
const CHECKPOINT_WINDOW: &str = "checkpoint_window";
/// Required coverage of a stream with `parent_streams`.
const PARENT_DETAIL_ACCOUNTING: &str = "parent_detail_accounting";

impl Checkpoint {
    /// The streams it depends on.
    #[must_use]
    pub fn parents(&self) -> &[String] {
        match self {
            Self::Own => &[],
            Self::StateStream(parent) => std::slice::from_ref(parent),
            Self::ParentStreams(parents) => parents,
        }
    }

    pub(super) fn read(stream: &Node<'_>, faults: &mut Faults) -> Self {
        let (state, parents) = (stream.child("state_stream"), stream.child("parent_streams"));
        match (state, parents) {
            (Some(_), Some(parents)) => {
                let allowed = "either state_stream or parent_streams, not both";
                faults.error(ManifestFaultCode::Conflict, Some(&parents), stream, allowed);
                Self::Own
            }
            (Some(state), None) => {
                check_strategy(stream, CHECKPOINT_WINDOW, "state_stream", faults);
                state.as_text(faults).map_or(Self::Own, Self::StateStream)
            }
            (None, Some(parents)) => {
                check_strategy(stream, PARENT_DETAIL_ACCOUNTING, "parent_streams", faults);
                read_parents(&parents, faults)
            }
            (None, None) => Self::Own,
        }
    }
}

fn check_strategy(stream: &Node<'_>, wanted: &str, because: &str, faults: &mut Faults) {
    let strategy = stream.child("coverage_strategy");
    if strategy.as_ref().and_then(|node| node.view().name()).as_deref() == Some(wanted) {
        return;
    }
    let path = format!("{}.coverage_strategy", stream.path());
    let allowed = format!("{wanted}, because there is a {because}");
    let value = strategy.as_ref().map_or("", Node::text);
    faults.error_at(ManifestFaultCode::Conflict, &path, value, &allowed);
}

fn read_parents(node: &Node<'_>, faults: &mut Faults) -> Checkpoint {
    let Some(elements) = node.elements(faults) else { return Checkpoint::Own };
    if elements.is_empty() {
        node.wrong_type("a list of streams that is not empty", faults);
        return Checkpoint::Own;
    }
    let mut parents = Vec::new();
    for element in elements {
        let Some(parent) = element.as_text(faults) else { continue };
        if parents.contains(&parent) {
            faults.error(ManifestFaultCode::Duplicate, Some(&element), node, "each parent once");
        } else {
            parents.push(parent);
        }
    }
    Checkpoint::ParentStreams(parents)
}

/// Checks that all parents exist, that no stream is its own parent, and that there is no cycle.
pub(super) fn check_graph(streams: &[StreamManifest], nodes: &[Node<'_>], faults: &mut Faults) {
    let index = streams.iter().enumerate().map(|(at, stream)| (stream.name.as_str(), at)).collect::<BTreeMap<_, _>>();
    let mut graph = vec![Vec::new(); streams.len()];
    for (at, stream) in streams.iter().enumerate() {
        for parent in stream.checkpoint.parents() {
            let path = format!("{}.{}", nodes[at].path(), field_of(&stream.checkpoint));
            match index.get(parent.as_str()) {
                _ if *parent == stream.name => {
                    faults.error_at(ManifestFaultCode::SelfReference, &path, parent, "another stream");
                }
                Some(&parent) => graph[at].push(parent),
                None => {
                    let allowed = "the name of a stream in this manifest";
                    faults.error_at(ManifestFaultCode::UnknownStream, &path, parent, allowed);
                }
            }
        }
    }
    if let Some(ring) = find_ring(&graph) {
        let path = format!("{}.{}", nodes[ring[0]].path(), field_of(&streams[ring[0]].checkpoint));
        let names = ring.iter().chain(&ring[..1]).map(|&at| streams[at].name.as_str()).collect::<Vec<_>>();
        let allowed = "dependencies without a ring";
        faults.error_at(ManifestFaultCode::Cycle, &path, &names.join(" -> "), allowed);
    }
}

const fn field_of(checkpoint: &Checkpoint) -> &'static str {
    match checkpoint {
        Checkpoint::Own | Checkpoint::StateStream(_) => "state_stream",
        Checkpoint::ParentStreams(_) => "parent_streams",
    }
}

/// A cycle in the graph, if any: depth-first search with its own stack.
fn find_ring(graph: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; graph.len()];
    for root in 0..graph.len() {
        if marks[root] != Mark::New {
            continue;
        }
        // The path from the root, each stream with the number of parents followed.
        let mut path = vec![(root, 0)];
        marks[root] = Mark::OnPath;
        while let Some((at, followed)) = path.last_mut() {
            let Some(&parent) = graph[*at].get(*followed) else {
                marks[*at] = Mark::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match marks[parent] {
                Mark::Done => {}
                Mark::New => {
                    marks[parent] = Mark::OnPath;
                    path.push((parent, 0));
                }
                Mark::OnPath => {
                    return Some(path.iter().map(|&(at, _)| at).skip_while(|&at| at != parent).collect());
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rings_of_any_length_are_found_and_named_in_order() {
        assert_eq!(find_ring(&[vec![1], vec![2], vec![]]), None);
        assert_eq!(find_ring(&[vec![1, 2], vec![3], vec![3], vec![]]), None, "two ways to the same parent are no ring");
        assert_eq!(find_ring(&[vec![1], vec![0]]), Some(vec![0, 1]));
        assert_eq!(find_ring(&[vec![1], vec![2], vec![3], vec![1]]), Some(vec![1, 2, 3]));
        let long = (0..500).map(|at| vec![(at + 1) % 500]).collect::<Vec<_>>();
        assert_eq!(find_ring(&long).map(|ring| ring.len()), Some(500));
    }

    proptest! {
        // Another way to decide it: take away streams without parents until none is left.
        #[test]
        fn the_search_agrees_with_taking_leaves_away(
            graph in prop::collection::vec(prop::collection::vec(0_usize..8, 0..3), 8)
        ) {
            let mut left = (0..graph.len()).collect::<Vec<_>>();
            while let Some(at) = left.iter().position(|&at| graph[at].iter().all(|parent| !left.contains(parent))) {
                left.remove(at);
            }
            prop_assert_eq!(find_ring(&graph).is_some(), !left.is_empty());
        }
    }
}
