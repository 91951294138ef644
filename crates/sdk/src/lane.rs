//! A list with a detail per item: newest first, recovery before new work, and an account of every key.
