/* The protocol of the ledger: spend, hold, commit, anchor, backup, restore, recover.
 *
 * A model for Spin, which visits every reachable state. There is one budget with room for CAP runs,
 * and requests under keys that may be sent at any time, and again, to any of the SERVERS: a hold, its
 * commit, and SPENDS spends. Servers may crash before each of their steps. The power may fail; then
 * what was not synced is lost or not, of the store and of the anchor. A backup is taken at some
 * moment and put back at another, an export is taken, and an operator recovers the ledger where it
 * is read-only, with the export or without; a recovery may crash too. The macros below say how often
 * each of these happens at most.
 *
 * Records have numbers of their own, which stand for their hashes: a record is made once, on one
 * chain, so a number tells the whole chain before it.
 *
 * What is checked, in every state:
 *   - no more runs are permitted than the budget has room for, backups or not;
 *   - a key permits one run;
 *   - what a caller is told is synced in the store, and the anchor that is synced knows of it;
 *   - what a caller was told is in the store, or the ledger is read-only or retired.
 *
 * What is taken for granted: a transaction of the store is atomic, and one process writes at a time
 * (SQLite); there is one anchor; and a backup is put back while no transaction is under way, though
 * requests may be: a server may have asked the anchor and not yet read the store, or have committed
 * and not yet told the anchor. So the anchor takes a record only if it is on one chain with what it
 * knows, which the store tells and nothing changes later.
 *
 * With each of these macros something is left out that the protocol needs, and Spin finds what goes
 * wrong: NO_STORE_SYNC, NO_REPLAY_SYNC, NO_ANCHOR_SYNC, NO_ANCHOR, NO_KEYS, NO_LOCK,
 * NO_HOLDS, NO_CHAIN. (What a server asks the anchor before it reads the store spares it a commit
 * that the anchor would not take; the promises do not need it.)
 */
#ifndef CAP
#define CAP 1
#endif
#ifndef SERVERS
#define SERVERS 2
#endif
#ifndef SPENDS
#define SPENDS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef POWER
#define POWER 1
#endif
#ifndef RESTORES
#define RESTORES 1
#endif
#ifndef EXPORTS
#define EXPORTS RESTORES
#endif
#ifndef RECOVERS
#define RECOVERS 2
#endif

#define HOLD 1
#define COMMIT 2
#define SPEND 3
#define KEYS (COMMIT + SPENDS) /* from SPEND on, they spend */
#define RESUME 8
#define RETIRE 9
#define ROOM 7 /* records of a chain, and one */
#define MOST 9 /* records that are ever made, and one */
#define OPERATOR 3

typedef Store { byte length; byte record[ROOM]; byte incarnation; byte unanchored; bit retired }
typedef Anchor { byte incarnation; byte length; byte record }

Store seen, synced, backup, exported;
Anchor anchor_seen, anchor_synced;
byte key_of[MOST];
byte before[MOST]; /* the record that each was appended to */
bit admitted[MOST];
byte next = 1;
byte lock;
byte power, crashes, restores, recovers;
bit has_backup, has_export;

/* What callers were told. */
bit told[MOST];
byte runs, runs_of[KEYS + 1];
bit holds;

/* Used within one step. */
hidden byte i, found, spent, held, lost;

inline copy(to, from) {
    to.length = from.length;
    i = 0;
    do
    :: i < ROOM -> to.record[i] = from.record[i]; i++
    :: else -> break
    od;
    to.incarnation = from.incarnation;
    to.unanchored = from.unanchored;
    to.retired = from.retired;
    i = 0
}

#define FULL (next >= MOST || seen.length + 1 >= ROOM)

inline append(key, yes) {
    assert(!FULL);
    key_of[next] = key;
    admitted[next] = yes;
    before[next] = seen.record[seen.length];
    seen.length++;
    seen.record[seen.length] = next;
    next++
}

/* Whether a store lacks the record of a mark; and the same, or it is of another incarnation. */
#define LACKS(store, at, what) (store.length < at || store.record[at] != what)
#define BEHIND(store, mark) \
    (store.incarnation != mark.incarnation || LACKS(store, mark.length, mark.record))

/* found: whether one of two records is under the other, or they are the same. */
inline one_chain(one, other) {
    found = (one > other -> one : other); /* made later */
    do
    :: found > one || found > other -> found = before[found]
    :: else -> break
    od;
    found = found == (one < other -> one : other)
}

/* found: the record of a key, or 0; spent and held: what is taken. */
inline account(key) {
    found = 0; spent = 0; held = 0;
    i = 1;
    do
    :: i <= seen.length ->
        if
        :: key_of[seen.record[i]] == key -> found = seen.record[i]
        :: else
        fi;
        if
        :: !admitted[seen.record[i]]
        :: else ->
            if
            :: key_of[seen.record[i]] == HOLD -> held++
            :: key_of[seen.record[i]] == COMMIT -> held--; spent++
            :: key_of[seen.record[i]] > COMMIT && key_of[seen.record[i]] <= KEYS -> spent++
            :: else
            fi
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline check_told() {
    lost = 0;
    i = 1;
    do
    :: i < MOST ->
        if
        :: told[i] ->
            found = 1;
            do
            :: found <= synced.length && synced.record[found] != i -> found++
            :: else -> break
            od;
            lost = lost || found > synced.length
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0; found = 0;
    assert(!lost || synced.retired || BEHIND(synced, anchor_synced));
    lost = 0
}

/* Go on, unless the power failed meanwhile; or crash. */
#define LIVE \
    if \
    :: born == power \
    :: born != power -> goto dead \
    :: born == power && crashes < CRASHES -> crashes++; goto dead \
    fi

proctype Server(byte me) {
    byte born, incarnation, key, record, length, head;
    byte mine, mine_record;     /* what this server has anchored */
    byte others, others_record; /* what others have, which need not be synced */
    bit replayed, refused;

dead:
    atomic {
        if
        :: lock == me -> lock = 0
        :: else
        fi;
        born = 0; incarnation = 0; key = 0; record = 0; length = 0; head = 0;
        mine = 0; mine_record = 0; others = 0; others_record = 0; replayed = 0; refused = 0
    }

    /* Open: what the anchor says is read before the store. */
end_read_only:
    atomic {
        anchor_seen.incarnation == seen.incarnation; /* else it is read-only */
        incarnation = seen.incarnation;
        others = anchor_seen.length; others_record = anchor_seen.record;
        born = power
    }
    atomic { lock == 0 || born != power; LIVE;
        if
        :: seen.incarnation != incarnation || seen.length < others ||
           seen.record[others] != others_record -> goto dead /* read-only */
        :: else
        fi;
        length = seen.length; head = seen.record[length];
        if
        :: length > others -> copy(synced, seen); goto anchor /* of a server that died */
        :: else
        fi
    }

idle:
    atomic { key = 0; record = 0; length = 0; head = 0; replayed = 0; refused = 0 }
    atomic {
        if
        :: born != power -> goto dead
        :: born == power && crashes < CRASHES -> crashes++; goto dead
        :: born == power && holds -> key = COMMIT
        :: born == power -> key = HOLD
        :: born == power -> key = SPEND
#if SPENDS == 2
        :: born == power -> key = SPEND + 1
#endif
        fi;
        /* Ask the anchor what others were told, before the store is read. */
        if
        :: anchor_seen.length > others ->
            others = anchor_seen.length; others_record = anchor_seen.record
        :: else
        fi
    }

    /* Lock, read, compare with the anchor, and decide. */
    atomic { lock == 0 || born != power; LIVE;
#ifndef NO_LOCK
        lock = me;
#endif
        if
        :: seen.incarnation != incarnation -> goto dead
#ifdef NO_KEYS
        :: FULL -> lock = 0; goto idle
#endif
        :: LACKS(seen, mine, mine_record) || LACKS(seen, others, others_record) -> goto dead
        :: else
        fi;
        d_step { account(key); record = found; length = seen.length; head = seen.record[length] }
#ifdef NO_KEYS
        record = 0;
#endif
        replayed = record != 0;
        if
        :: !replayed && (seen.retired || (key == COMMIT && held == 0)) ->
            lock = 0; found = 0; spent = 0; held = 0;
            goto idle /* an error: nothing is recorded */
        :: else
        fi;
#ifdef NO_HOLDS
        refused = !replayed && key != COMMIT && spent >= CAP;
#else
        refused = !replayed && key != COMMIT && spent + held >= CAP;
#endif
        found = 0; spent = 0; held = 0;
        if
        :: replayed && mine >= length -> lock = 0; goto answer
        :: else
        fi
    }

    /* Commit, and sync. Others see it when this server has let go of the lock, or died. */
    if
    :: !replayed ->
        atomic { LIVE;
            record = next;
            d_step { append(key, !refused) };
            length = seen.length;
            head = record
        }
    :: else
    fi;
    atomic { LIVE;
        if
#ifdef NO_STORE_SYNC
        :: !replayed
#endif
#ifdef NO_REPLAY_SYNC
        :: replayed
#endif
        :: else -> copy(synced, seen)
        fi;
        if
        :: lock == me -> lock = 0
        :: else
        fi
    }

anchor:
#ifndef NO_ANCHOR
    atomic { LIVE;
        if
        :: anchor_seen.incarnation != incarnation -> goto dead /* begun anew by a recovery */
        :: else
        fi;
#ifndef NO_CHAIN
        d_step { one_chain(head, anchor_seen.record) };
        if
        :: !found -> goto dead /* a backup was put back meanwhile */
        :: else -> found = 0
        fi;
#endif
        if
        :: length > anchor_seen.length -> anchor_seen.length = length; anchor_seen.record = head
        :: else
        fi
    }
#ifndef NO_ANCHOR_SYNC
    atomic { LIVE;
        d_step {
            anchor_synced.incarnation = anchor_seen.incarnation;
            anchor_synced.length = anchor_seen.length;
            anchor_synced.record = anchor_seen.record
        };
        mine = length; mine_record = head
    }
#endif
#endif

answer:
    atomic { LIVE;
        if
        :: key == 0 -> goto idle /* it was only opened */
        :: else
        fi;
        d_step {
            told[record] = 1;
            if
            :: key == HOLD && admitted[record] -> holds = 1
            :: key != HOLD && admitted[record] && !replayed ->
                runs++;
                runs_of[key]++;
                assert(runs <= CAP);
                assert(runs_of[key] == 1)
            :: else
            fi;
            check_told();
            assert(restores || (synced.length >= length && synced.record[length] == head));
#ifndef NO_ANCHOR
            assert(anchor_synced.incarnation > incarnation || anchor_synced.length >= length)
#endif
        }
    };
    goto idle
}

/* Puts a ledger right that is read-only. */
proctype Operator() {
    byte born, incarnation;
dead:
    atomic {
        if
        :: lock == OPERATOR -> lock = 0
        :: else
        fi;
        born = 0; incarnation = 0
    }
end_idle:
    atomic {
        recovers < RECOVERS && lock == 0 && BEHIND(seen, anchor_seen);
        recovers++;
        lock = OPERATOR; born = power
    }
    atomic { LIVE;
        d_step {
            /* Whether the export goes on where the store ends. */
            found = has_export && exported.length > seen.length;
            i = 1;
            do
            :: i <= seen.length -> found = found && exported.record[i] == seen.record[i]; i++
            :: else -> break
            od;
            i = 0
        }
        /* The operator need not have it. */
        if
        :: found -> found = 0
        :: found ->
            d_step {
                do
                :: seen.length < exported.length ->
                    seen.length++;
                    seen.record[seen.length] = exported.record[seen.length]
                :: else -> break
                od;
                seen.retired = seen.retired || exported.retired
            }
        :: else
        fi;
        d_step {
            /* An anchor of an older incarnation does not know everything. */
            lost = !(anchor_seen.incarnation >= seen.incarnation ||
                     anchor_seen.incarnation == seen.unanchored);
            lost = lost || seen.length < anchor_seen.length ||
                   seen.record[anchor_seen.length] != anchor_seen.record;
            if
            :: lost && !seen.retired -> append(RETIRE, 0); seen.retired = 1
            :: !lost && found -> append(RESUME, 0)
            :: else
            fi;
            incarnation = 1 + (anchor_seen.incarnation > seen.incarnation ->
                               anchor_seen.incarnation : seen.incarnation);
            seen.incarnation = incarnation;
            seen.unanchored = anchor_seen.incarnation;
            found = 0; lost = 0
        }
    }
    atomic { LIVE; copy(synced, seen) }
    atomic { LIVE; lock = 0 }
    /* Begin a new anchor: a file of its own, put in the place of the old one. */
    atomic { LIVE;
        if
        :: anchor_seen.incarnation > incarnation || seen.incarnation != incarnation -> goto dead
        :: anchor_seen.incarnation != incarnation && !seen.retired &&
           LACKS(seen, anchor_seen.length, anchor_seen.record) ->
            goto dead /* what a server has acknowledged since it was asked */
        :: else
        fi;
        d_step {
            anchor_seen.incarnation = incarnation;
            anchor_seen.length = seen.length;
            anchor_seen.record = seen.record[seen.length]
        }
    }
    atomic { LIVE;
        d_step {
            anchor_synced.incarnation = anchor_seen.incarnation;
            anchor_synced.length = anchor_seen.length;
            anchor_synced.record = anchor_seen.record
        }
    }
    atomic { LIVE; lock == 0;
        if
        :: seen.incarnation == incarnation -> d_step { seen.unanchored = 0; copy(synced, seen) }
        :: else
        fi
    }
    goto dead
}

/* What happens to the machine, and what an administrator does with files. */
active proctype World() {
    d_step {
        power = 1;
        seen.incarnation = 1; synced.incarnation = 1;
        anchor_seen.incarnation = 1; anchor_synced.incarnation = 1
    }
    atomic {
        run Server(1);
#if SERVERS == 2
        run Server(2);
#endif
        run Operator()
    }
end:
    do
    :: atomic { power <= POWER ->
        power++;
        lock = 0;
        if
        :: copy(seen, synced)
        :: copy(synced, seen)
        fi;
        if
        :: anchor_seen.incarnation = anchor_synced.incarnation;
           anchor_seen.length = anchor_synced.length;
           anchor_seen.record = anchor_synced.record
        :: anchor_synced.incarnation = anchor_seen.incarnation;
           anchor_synced.length = anchor_seen.length;
           anchor_synced.record = anchor_seen.record
        fi;
        d_step { check_told() } }
    :: d_step { RESTORES && !has_backup && lock == 0 -> has_backup = 1; copy(backup, seen) }
    :: d_step { EXPORTS && !has_export && lock == 0 -> has_export = 1; copy(exported, seen) }
    :: d_step { has_backup && restores < RESTORES && lock == 0 ->
        restores++; copy(seen, backup); copy(synced, backup); check_told() }
    od
}
