//! A list of URLs, fetched politely: each host at its own pace, resumable, one result per URL.

mod bodies;
mod frontier;
mod journal;
mod result_line;
mod robots;
mod url_list;

pub use result_line::ResultLine;
