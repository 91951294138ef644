//! Care of the file: copies, forgetting, looking for damage, repair.

pub(crate) mod backup;
pub(crate) mod purge;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod row_hash;
pub(crate) mod verify;
