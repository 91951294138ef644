//! Who may work on what: leases with a fence.
//!
//! A lease is not a lock: its holder may sleep through its end and wake up. So each one has an epoch,
//! larger than any before it, and every change looks at it inside its own transaction
//! ([`Lease::check`]). Taking over is safe at any time; taking over too early is merely rude, so a
//! holder that lives is left alone until its time is over, and one that is dead is replaced at once.
//! A run needs its connection and its credential: both leases, or none.

pub(crate) mod holder;
pub(crate) mod lock_holder;
pub(crate) mod seen;

use crate::error::{Failure, StoreError, date_from_sql, date_to_sql, from_sql, to_sql};
use crate::lease::holder::{Holder, boot_millis};
use crate::sql::{execute, first};
use crate::store::{Store, meta_number, set_meta_number};
use gleaner_engine::{Epoch, WallTime};
use rusqlite::{Connection, Row};
use std::time::Duration;

/// How long a lease lives without a sign of its holder. Long enough for a loaded machine, short
/// enough that nobody waits long for a process that hangs.
pub const LEASE_TTL: Duration = Duration::from_secs(30);
/// How often a holder should give a sign: three may be lost.
pub const HEARTBEAT: Duration = Duration::from_secs(8);

/// The right to work on one thing, until somebody else gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    name: String,
    epoch: Epoch,
}

/// What a lease is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOn<'a> {
    /// One connection: one run at a time.
    Connection(&'a str),
    /// One account of one provider: two connections that share it do not run at once.
    Credential {
        /// The provider.
        provider: &'a str,
        /// A keyed hash of the credential, never the credential.
        hash: &'a str,
    },
    /// The scheduler.
    Serve,
}

impl LeaseOn<'_> {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Connection(name) => format!("connection {name}"),
            Self::Credential { provider, hash } => format!("credential {provider} {hash}"),
            Self::Serve => "serve".to_owned(),
        }
    }
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// All of them are ours.
    Yes {
        /// One per thing that was asked for, in that order. They have one epoch.
        leases: Vec<Lease>,
        /// Whether somebody held one of them before and did not give it back.
        took_over: bool,
    },
    /// Somebody has one of them. Nothing was taken.
    Held(HeldBy),
}

/// Somebody who works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// What is held.
    pub lease: String,
    /// Under this epoch, by which the holder can be reached.
    pub epoch: Epoch,
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: WallTime,
    /// Until when, unless it gives another sign.
    pub until: WallTime,
}

impl HeldBy {
    /// Whether it is this that is held.
    #[must_use]
    pub fn is_on(&self, on: LeaseOn<'_>) -> bool {
        self.lease == on.name()
    }
}

impl Lease {
    pub(crate) const fn new(name: String, epoch: Epoch) -> Self {
        Self { name, epoch }
    }

    /// Its epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether one of these is on this connection.
    pub(crate) fn has_connection(leases: &[Self], name: &str) -> Result<(), StoreError> {
        let wanted = LeaseOn::Connection(name).name();
        let found = leases.iter().any(|lease| lease.name == wanted);
        if found { Ok(()) } else { Err(StoreError::NotLeased(name.to_owned())) }
    }

    /// The fence: inside of the transaction that it guards.
    pub(crate) fn check(&self, connection: &Connection) -> Result<(), Failure> {
        let sql = "SELECT epoch FROM leases WHERE name = ?1 AND released = 0";
        let epoch = first(connection, sql, [&self.name], |row| row.get::<_, i64>(0))?;
        if epoch.map(from_sql) == Some(self.epoch.get()) {
            return Ok(());
        }
        Err(StoreError::Superseded { lease: self.name.clone() }.into())
    }
}

impl Store {
    /// Takes leases on all of these, or on none.
    ///
    /// # Errors
    ///
    /// When the store cannot be written, or is older than what was seen here.
    pub fn acquire(&mut self, on: &[LeaseOn<'_>], holder: &Holder, now: WallTime) -> Result<Acquired, StoreError> {
        self.check_not_restored()?;
        let names = on.iter().map(|on| on.name()).collect::<Vec<_>>();
        let acquired = self.write(&[], |transaction| {
            let mut took_over = false;
            for name in &names {
                match judge(transaction, name, holder, now)? {
                    Standing::Held(by) => return Ok(Acquired::Held(by)),
                    Standing::Abandoned => took_over = true,
                    Standing::Free => {}
                }
            }
            let epoch = meta_number(transaction, "epoch")?.saturating_add(1);
            set_meta_number(transaction, "epoch", epoch)?;
            for name in &names {
                take(transaction, name, epoch, holder, now)?;
            }
            let lease = |name: &String| Lease { name: name.clone(), epoch: Epoch::new(epoch) };
            Ok(Acquired::Yes { leases: names.iter().map(lease).collect(), took_over })
        })?;
        if let Acquired::Yes { leases, .. } = &acquired
            && let Err(error) = self.note_epoch()
        {
            // Whoever is told no must not hold anything. What went wrong first is what counts.
            let _given_back = self.release(leases);
            return Err(error);
        }
        Ok(acquired)
    }

    /// Notes the epoch of the store outside of it. Two processes may do so at once, and the one with
    /// the lower epoch may be the last: so each looks again after it wrote.
    fn note_epoch(&mut self) -> Result<(), StoreError> {
        let mut noted = 0;
        loop {
            let epoch = self.epoch()?.get();
            if epoch <= noted {
                return Ok(());
            }
            let done = self.seen.remember(epoch);
            self.heed(done)?;
            noted = epoch;
        }
    }

    /// Gives a sign of life.
    ///
    /// # Errors
    ///
    /// [`StoreError::Superseded`] when somebody else has them; then nothing may be sent any more.
    pub fn heartbeat(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        self.write(leases, |transaction| {
            let now = boot_millis();
            let sql = "UPDATE leases SET heartbeat_boot_ms = ?2, expires_boot_ms = ?3 WHERE name = ?1";
            for lease in leases {
                execute(transaction, sql, (&lease.name, to_sql(now), to_sql(now + ttl())))?;
            }
            Ok(())
        })
    }

    /// Gives leases back. Those that somebody else has are left alone.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub fn release(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        self.write(&[], |transaction| give_back(transaction, leases))
    }

    /// Who holds this, if anybody does.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn held_by(&self, on: LeaseOn<'_>, asking: &Holder, now: WallTime) -> Result<Option<HeldBy>, StoreError> {
        self.read(|connection| held_by(connection, on, asking, now))
    }

    /// The owner knows that the store is an older copy, and wants to go on from there.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub fn accept_restored(&mut self) -> Result<(), StoreError> {
        let seen = self.seen.epoch();
        self.write(&[], |transaction| {
            let epoch = meta_number(transaction, "epoch")?.max(seen);
            set_meta_number(transaction, "epoch", epoch)
        })
    }

    /// # Errors
    ///
    /// [`StoreError::OlderThanSeen`] when this is an older copy of the store that was here before.
    pub fn check_not_restored(&self) -> Result<(), StoreError> {
        // The note first: it is written after the store, so what it says is in the store by then.
        let seen = self.seen.epoch();
        let found = self.epoch()?.get();
        if found < seen { Err(StoreError::OlderThanSeen { found, seen }) } else { Ok(()) }
    }
}

/// Who holds this, if anybody does.
pub(crate) fn held_by(
    connection: &Connection,
    on: LeaseOn<'_>,
    asking: &Holder,
    now: WallTime,
) -> Result<Option<HeldBy>, Failure> {
    match judge(connection, &on.name(), asking, now)? {
        Standing::Held(by) => Ok(Some(by)),
        Standing::Abandoned | Standing::Free => Ok(None),
    }
}

pub(crate) fn give_back(connection: &Connection, leases: &[Lease]) -> Result<(), Failure> {
    let sql = "UPDATE leases SET released = 1 WHERE name = ?1 AND epoch = ?2";
    for lease in leases {
        execute(connection, sql, (&lease.name, to_sql(lease.epoch.get())))?;
    }
    Ok(())
}

pub(crate) enum Standing {
    Free,
    Abandoned,
    Held(HeldBy),
}

pub(crate) fn judge(connection: &Connection, name: &str, asking: &Holder, now: WallTime) -> Result<Standing, Failure> {
    let sql = "SELECT pid, process_started, boot, pid_namespace, since, heartbeat_boot_ms, expires_boot_ms, epoch
               FROM leases WHERE name = ?1 AND released = 0";
    let read = |row: &Row<'_>| {
        let [started, heartbeat, expires, epoch] = [row.get(1)?, row.get(5)?, row.get(6)?, row.get(7)?].map(from_sql);
        let holder = Holder { pid: row.get(0)?, started, boot: row.get(2)?, pid_namespace: row.get(3)? };
        Ok((holder, date_from_sql(row.get(4)?), heartbeat, expires, Epoch::new(epoch)))
    };
    let Some((holder, since, heartbeat, expires, epoch)) = first(connection, sql, [name], read)? else {
        return Ok(Standing::Free);
    };
    // Read after the row and not before waiting for the lock: a sign that was given meanwhile would
    // seem to come from the future.
    let boot_now = boot_millis();
    // A clock that is behind the last sign was set to zero: the machine started again.
    let is_over = expires <= boot_now || boot_now < heartbeat;
    if is_over || holder.is_dead_for(asking) {
        return Ok(Standing::Abandoned);
    }
    let until = now + Duration::from_millis(expires - boot_now);
    Ok(Standing::Held(HeldBy { lease: name.to_owned(), epoch, pid: holder.pid, since, until }))
}

pub(crate) fn take(
    connection: &Connection,
    name: &str,
    epoch: u64,
    holder: &Holder,
    now: WallTime,
) -> Result<(), Failure> {
    let Holder { pid, started, boot, pid_namespace } = holder;
    let sql = "INSERT OR REPLACE INTO leases VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)";
    let boot_now = boot_millis();
    let [epoch, started, heartbeat, expires] = [epoch, *started, boot_now, boot_now + ttl()].map(to_sql);
    let values = (name, epoch, pid, started, boot, pid_namespace, date_to_sql(now), heartbeat, expires);
    execute(connection, sql, values)
}

fn ttl() -> u64 {
    u64::try_from(LEASE_TTL.as_millis()).unwrap_or(u64::MAX)
}
