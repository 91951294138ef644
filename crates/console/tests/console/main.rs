//! The console as a whole, over its socket: real store, real runs as processes, real actions.

mod acts;
mod client;
mod description;
mod exports;
mod load;
mod matrix;
mod picture;
mod reach;
mod reads;
mod secrets;
mod sign_in;
mod streams;
mod world;
