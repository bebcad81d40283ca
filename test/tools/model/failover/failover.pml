/* A primary, its synchronous standby, and who promotes it.
 *
 * Two requests want one coupon. Two tills send them, repeat them and query them, and reach any server
 * that takes writes, the old primary too. A commit is in the log of its server first, then waits for
 * the standby, and only then others see it. The primary may crash, only seem to be gone, or lose its
 * standby, at any moment, and any wait may be cancelled. Patroni, or a person, takes each step once
 * its guard allows it, or later.
 *
 * spin -search checks every order. With one of the names below defined, a safeguard is missing, and
 * the search finds what it is for.
 *   -DNO_ERROR          a call whose wait is cancelled gets its answer, not 503
 *   -DNO_RETRY_BARRIER  a retry that finds its record does not wait for the standby
 *   -DNO_READ_BARRIER   a query does not wait for the standby
 *   -DNO_SYNC           a standby is promoted that is not synchronous
 *   -DNO_NOTE           the primary goes on alone before that is noted
 *   -DNO_CATCH_UP       a standby that is back counts as synchronous before it has everything
 *   -DNO_FENCE          the old primary goes on alone after the promotion
 *   -DNO_REPAIR         the promoted server neither goes on alone nor gets a standby
 *   -DLATE_SETTING      a retry or query goes by what synchronous_standby_names was when it began
 */
#define REQUESTS 2
#define TILLS 2
#define CALLS 3
#define FAULTS 3
#define MOST_LOG 8

/* Answers; NONE: the request is unknown. And where a call is that runs nowhere. */
#define NONE 0
#define GRANTED 1
#define REFUSED 2
#define NOWHERE 2

/* end: the length of the log. log: of what the standby lacks, the request + 1 whose answer it is, or 0: a barrier.
 * acked: how much the standby is known to have. waits: synchronous_standby_names is set.
 * pending: the request + 1 that is committed here and still waits, so that nobody sees it, or 0. */
typedef Server {
  byte end; byte log[MOST_LOG]; byte acked; byte answer[REQUESTS]; byte pending;
  bool waits; bool writable; bool up; bool gone
};
Server server[2];

/* What etcd knows, or the person: who is the primary, and whether the other server may replace it.
 * enough: how long the log of the other one must be before that. */
byte primary = 0;
bool in_sync = true;
byte enough = 0;
#define other (1 - primary)
#define has_standby (server[other].up && !server[other].writable)
#define takes_writes(s) (server[s].up && server[s].writable)

/* What tills know, and where their calls run; the last one is that of the end. */
byte answered[REQUESTS];
byte at[TILLS + 1] = NOWHERE;
byte calls = 0;
byte tills = TILLS;
byte faults = 0;
bool is_served = false;

inline append(on, entry) { server[on].log[server[on].end] = entry; server[on].end++; wanted = server[on].end }

inline reply() {
  assert(known == NONE || a == known);
  if :: a != NONE -> assert(answered[r] == NONE || answered[r] == a); answered[r] = a :: else fi;
  is_served = (t == TILLS)
}

#ifdef LATE_SETTING
#define read_setting skip
#else
#define read_setting needs = server[s].waits
#endif
#ifdef NO_RETRY_BARRIER
#define needs_retry_barrier false
#else
#define needs_retry_barrier needs
#endif
#ifdef NO_READ_BARRIER
#define needs_read_barrier false
#else
#define needs_read_barrier needs
#endif
#define is_recorded (server[s].answer[r] != NONE && server[s].pending != r + 1)

/* A call in one transaction. Where it waits for the lock of another one, others go on. */
inline work() {
  at[t] = s;
  known = answered[r];
  needs = server[s].waits;
  if
  :: at[t] == NOWHERE
  :: at[t] != NOWHERE && is_read ->
     if :: is_recorded -> a = server[s].answer[r] :: else fi;
     read_setting;
     if :: needs_read_barrier -> append(s, 0) :: else -> reply() fi
  :: at[t] != NOWHERE && !is_read && is_recorded ->
     a = server[s].answer[r];
     read_setting;
     if :: needs_retry_barrier -> append(s, 0) :: else -> reply() fi
  :: at[t] != NOWHERE && !is_read && server[s].answer[r] == NONE && server[s].pending == 0 ->
     if
     :: server[s].answer[0] == GRANTED || server[s].answer[1] == GRANTED -> a = REFUSED
     :: else -> a = GRANTED
     fi;
     server[s].answer[r] = a;
     server[s].pending = r + 1;
     append(s, r + 1)
  fi
}

#define has_ended (at[t] != NOWHERE && (!server[s].waits || server[s].acked >= wanted))

/* The end of its commit: the standby has it, or its server has crashed, or somebody cancels the wait. */
inline commit() {
  if
  :: has_ended -> reply()
  :: at[t] == NOWHERE
  :: at[t] != NOWHERE && !has_ended && t != TILLS ->
#ifdef NO_ERROR
     reply()
#else
     skip /* 503 */
#endif
  fi;
  if :: at[t] != NOWHERE && !is_read && server[s].pending == r + 1 -> server[s].pending = 0 :: else fi
}

inline forget() {
  at[t] = NOWHERE; s = 0; r = 0; is_read = false; needs = false; a = NONE; known = NONE; wanted = 0
}

proctype Till(byte t) {
  byte s, r, a, known, wanted;
  bool is_read, needs;
  do
  :: atomic {
       calls < CALLS && (takes_writes(0) || takes_writes(1)) ->
       calls++;
       if :: takes_writes(0) -> s = 0 :: takes_writes(1) -> s = 1 fi;
       if :: r = 0 :: r = 1 fi;
       if :: is_read = false :: is_read = true fi;
       work();
       if :: wanted == 0 -> forget() :: else fi
     }
     if
     :: atomic { wanted > 0 -> commit(); forget() }
     :: wanted == 0
     fi
  :: calls == CALLS -> break
  od;
  tills--
}

#ifdef NO_SYNC
#define may_promote true
#else
#define may_promote in_sync
#endif
#if defined(NO_NOTE)
#define may_go_alone(s) (s == primary)
#elif defined(NO_FENCE)
#define may_go_alone(s) (s != primary || !in_sync)
#else
#define may_go_alone(s) (s == primary && !in_sync)
#endif
#ifdef NO_CATCH_UP
#define is_enough true
#else
#define is_enough (server[other].end >= enough)
#endif

/* Its calls end, and what waited is seen by all when it runs again. */
inline stop(on) {
  server[on].up = false;
  server[on].pending = 0;
  for (i : 0 .. TILLS) { if :: at[i] == on -> at[i] = NOWHERE :: else fi };
  i = 0
}

proctype Crash() {
  byte i;
  end: do
  :: atomic {
       faults < FAULTS && server[primary].up ->
       faults++;
       stop(primary);
       /* Its disk may be lost too. Without a synchronous standby, that is a restore. */
       if :: true :: in_sync -> server[primary].gone = true fi
     }
  od
}

#define may_start(s) (!server[s].up && !server[s].gone)
#define may_alone(s) (takes_writes(s) && server[s].waits && may_go_alone(s))

proctype Operate() {
  byte s, i;
  end: do
  :: atomic { /* streaming */
       server[primary].up && has_standby && server[other].end < server[primary].end ->
       s = server[primary].log[server[other].end];
       server[primary].log[server[other].end] = 0;
       if :: s > 0 -> server[other].answer[s - 1] = server[primary].answer[s - 1] :: else fi;
       server[other].end++;
       server[primary].acked = server[other].end;
       s = 0
     }
  :: atomic { /* promote; perhaps the primary only seems to be gone */
       may_promote && has_standby && (!server[primary].up || faults < FAULTS) ->
       if :: server[primary].up -> faults++ :: else fi;
       for (i : 0 .. MOST_LOG - 1) { server[primary].log[i] = 0 };
       i = 0;
       primary = other;
       server[primary].writable = true;
       in_sync = false;
       enough = server[primary].end
     }
  /* Start again. A server that knows of no promotion takes writes. */
  :: atomic { may_start(0) -> server[0].up = true }
  :: atomic { may_start(1) -> server[1].up = true }
  :: atomic { /* the standby is away: note it, and then go on alone */
       faults < FAULTS && in_sync && server[primary].up -> faults++; in_sync = false }
#ifndef NO_REPAIR
  :: atomic { may_alone(0) -> server[0].waits = false }
  :: atomic { may_alone(1) -> server[1].waits = false }
  :: atomic { /* stop the old primary and make it a standby, with a copy of files and settings */
       server[primary].up && (!server[other].up || server[other].writable) ->
       s = other;
       stop(s);
       server[s].up = true;
       server[s].gone = false;
       server[s].writable = false;
       server[s].waits = server[primary].waits;
       server[s].acked = 0;
       server[s].end = server[primary].end;
       for (i : 0 .. MOST_LOG - 1) { server[s].log[i] = 0; server[primary].log[i] = 0 };
       for (i : 0 .. REQUESTS - 1) { server[s].answer[i] = server[primary].answer[i] };
       server[primary].acked = server[s].end;
       s = 0; i = 0
     }
#endif
  :: atomic { /* commits wait again */
       server[primary].up && has_standby && !server[primary].waits && !in_sync ->
       server[primary].waits = true;
       enough = server[primary].end
     }
  :: atomic { /* and the standby has all that came before */
       server[primary].up && has_standby && server[primary].waits && !in_sync && is_enough ->
       in_sync = true;
       enough = 0
     }
  od
}

init {
  byte t, s, r, a, known, wanted;
  bool is_read, needs;
  atomic {
    for (s : 0 .. 1) { server[s].up = true; server[s].waits = true };
    s = 0;
    server[0].writable = true;
    run Till(0); run Till(1); run Crash(); run Operate()
  }
  tills == 0;
  t = TILLS;
  /* Never none at the end: a last call, whose wait nobody cancels, is answered. */
  do
  :: atomic { !is_served && server[primary].up -> s = primary; work(); if :: wanted == 0 -> forget() :: else fi }
     if
     :: atomic { wanted > 0 -> commit(); forget() }
     :: wanted == 0
     fi
  :: is_served -> break
  od
}

/* The primary has every answer that was given, and the coupon is granted once. */
#define is_lost(r) (answered[r] != NONE && server[primary].answer[r] != answered[r])

active proctype Watch() {
  end: atomic {
    (is_lost(0) || is_lost(1) || (answered[0] == GRANTED && answered[1] == GRANTED)) -> assert(false)
  }
}
