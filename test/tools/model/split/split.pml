/* How tenants leave a cell: its physical standby is promoted and becomes a cell of its own.
 *
 * One tenant leaves and one stays. Tills call all the time, by a directory that may be old. Two
 * operators run the same split side by side; each may stop between any two steps and begin again,
 * forward or back. Every step is one transaction, and reads what it needs from the databases.
 *
 * spin -search checks every order. With one of the names below defined, a safeguard is missing, and
 * the search finds what it is for.
 *   -DNO_DRAIN    the fence does not wait for calls that began before it
 *   -DNO_MARK     the new cell does not look for the mark in its own copy
 *   -DNO_ATTEMPT  a standby that was promoted for an abandoned split is used by the next one
 *   -DNO_LOCAL    the number of a cell is a row, which its standby has too
 *   -DNO_ORDER    the new cell lifts the fence before the old one gives up the tenant
 */
#define OLD 0
#define NEW 1
#define LEAVER 0
#define STAYER 1
#define CALLS 2
#define ATTEMPTS 2
#define MOST_WAL 8

/* What each database stores about a tenant: rows, so the standby gets them from the log. */
typedef Row { byte home; byte fence; byte drained; byte accepted };
typedef Cell { Row tenant[2]; byte number; byte unfinished[2]; bool writable };
Cell cell[2];

/* Of the log of the old cell: accepted calls (0), fences (the attempt + 1, or 1: lifted), and marks
 * that the calls before a fence have ended (DRAINED + the attempt). */
#define DRAINED 100
byte wal[MOST_WAL];
byte wal_tenant[MOST_WAL];
byte wal_end = 0;
byte replayed = 0;

/* What tills were told, and where the directory sends them. */
byte acknowledged[2];
byte directory[2];
byte attempt = 0;
byte calls = 0;
byte operators = 2;

#define accepts(c, t) \
  (cell[c].writable && cell[c].tenant[t].home == cell[c].number && cell[c].tenant[t].fence == 0)

inline log(t, what) { wal[wal_end] = what; wal_tenant[wal_end] = t; wal_end++ }

/* A till reads the directory, its call begins in that cell, and commits later. */
proctype Till() {
  byte t, c;
  do
  :: atomic { calls < CALLS -> calls++; if :: t = LEAVER :: t = STAYER fi; c = directory[t] - 1 }
     if
     :: atomic { accepts(c, t) -> cell[c].unfinished[t]++ }
        atomic {
          cell[c].tenant[t].accepted++;
          cell[c].unfinished[t]--;
          if :: c == OLD -> log(t, 0) :: else fi;
          acknowledged[t]++
        }
     :: atomic { !accepts(c, t) -> skip } /* 503 */
     fi
  :: calls == CALLS -> break
  od
}

proctype Standby() {
  end: do
  :: atomic {
       !cell[NEW].writable && replayed < wal_end ->
       if
       :: wal[replayed] == 0 -> cell[NEW].tenant[wal_tenant[replayed]].accepted++
       :: wal[replayed] > DRAINED -> cell[NEW].tenant[wal_tenant[replayed]].drained = wal[replayed] - DRAINED
       :: else -> cell[NEW].tenant[wal_tenant[replayed]].fence = wal[replayed] - 1
       fi;
       replayed++
     }
  od
}

#define is_fenced (cell[OLD].tenant[LEAVER].fence > 0)
#define is_switched (cell[OLD].tenant[LEAVER].home == 2)
#ifdef NO_ATTEMPT
#define is_of_attempt (cell[NEW].tenant[LEAVER].fence > 0)
#else
#define is_of_attempt (cell[NEW].tenant[LEAVER].fence == cell[OLD].tenant[LEAVER].fence)
#endif

#ifdef NO_DRAIN
#define is_drained true
#else
#define is_drained (cell[OLD].unfinished[LEAVER] == 0)
#endif
#define is_marked (cell[OLD].tenant[LEAVER].drained == cell[OLD].tenant[LEAVER].fence)
#ifdef NO_MARK
#define is_complete is_marked
#else
#define is_complete (cell[NEW].tenant[LEAVER].drained == cell[NEW].tenant[LEAVER].fence)
#endif
#ifdef NO_ORDER
#define may_lift (cell[NEW].tenant[LEAVER].home == 2)
#else
#define may_lift is_switched
#endif

/* Each guard is what a step asks the databases before, or in, its transaction. */
proctype Operator() {
  byte seen;
  do
  :: atomic { /* fence */
       !is_fenced && !is_switched && attempt < ATTEMPTS ->
       attempt++;
       cell[OLD].tenant[LEAVER].fence = attempt;
       log(LEAVER, attempt + 1)
     }
  :: /* the mark: first it sees that no call of before the fence is left, later it says so */
     atomic { is_fenced && is_drained -> seen = cell[OLD].tenant[LEAVER].fence }
     atomic {
       if
       :: cell[OLD].tenant[LEAVER].fence == seen && cell[OLD].tenant[LEAVER].drained != seen ->
          cell[OLD].tenant[LEAVER].drained = seen;
          log(LEAVER, DRAINED + seen)
       :: else
       fi
     }
  :: atomic { !cell[NEW].writable && is_fenced && is_marked -> cell[NEW].writable = true }
  :: atomic { /* the new cell takes the tenant, which stays fenced */
       is_fenced && cell[NEW].writable && is_of_attempt && is_complete && cell[NEW].tenant[LEAVER].home == 1 ->
       cell[NEW].tenant[LEAVER].home = 2;
       cell[NEW].number = 2
     }
  :: /* the switch: the old cell gives the tenant up, if the fence is still the one it saw */
     atomic { is_fenced && is_of_attempt && is_complete && cell[NEW].tenant[LEAVER].home == 2 ->
              seen = cell[OLD].tenant[LEAVER].fence }
     atomic {
       if
       :: cell[OLD].tenant[LEAVER].fence == seen && !is_switched -> cell[OLD].tenant[LEAVER].home = 2
       :: else
       fi
     }
  :: atomic { is_switched && directory[LEAVER] == 1 -> directory[LEAVER] = 2 }
  :: atomic { /* lift the fence */
       may_lift && cell[NEW].writable && cell[NEW].tenant[LEAVER].fence > 0 ->
       cell[NEW].tenant[LEAVER].fence = 0
     }
  :: atomic { /* back, until the switch */
       is_fenced && !is_switched ->
       cell[OLD].tenant[LEAVER].fence = 0;
       log(LEAVER, 1)
     }
  :: is_switched && directory[LEAVER] == 2 && cell[NEW].tenant[LEAVER].fence == 0 -> break
  :: !is_fenced && !is_switched && attempt == ATTEMPTS -> break
  od;
  operators--
}

init {
  atomic {
    cell[OLD].writable = true;
    cell[OLD].number = 1;
#ifdef NO_LOCAL
    cell[NEW].number = 1;
#else
    cell[NEW].number = 2; /* a setting of its server, not a row */
#endif
    byte t;
    for (t : LEAVER .. STAYER) {
      cell[OLD].tenant[t].home = 1;
      cell[NEW].tenant[t].home = 1;
      directory[t] = 1
    };
    run Till(); run Till(); run Standby(); run Operator(); run Operator()
  }
  /* Never none after the end: where tills are sent, they are served. */
  operators == 0;
  assert(accepts(directory[LEAVER] - 1, LEAVER) && accepts(OLD, STAYER))
}

/* Never two homes, and whoever accepts calls has every call that was acknowledged. */
#define has_two_homes(t) (accepts(OLD, t) && accepts(NEW, t))
#define has_lost(c, t) \
  (accepts(c, t) && cell[c].unfinished[t] == 0 && cell[c].tenant[t].accepted != acknowledged[t])

active proctype Watch() {
  end: atomic {
    (has_two_homes(LEAVER) || has_two_homes(STAYER) || has_lost(OLD, LEAVER) || has_lost(NEW, LEAVER)
     || has_lost(OLD, STAYER)) -> assert(false)
  }
}
