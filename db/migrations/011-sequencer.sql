-- The state of the sequencer, which gives events their places.

-- A step of the sequencer takes some numbers of events, and no later step takes them again. So an
-- event has one position in its feed, and a ledger entry one business day, without an index entry
-- for each event:
--   * The numbers of a step are those above after_seq up to high_seq, except core.event_gap, and
--     those of late_seqs. Steps only go forward, and a number that left the gaps never returns, so
--     the numbers of two steps are disjoint.
--   * A page holds numbers of the current step in ascending order, so each once.
--   * A feed gets one page in a step. A distributor gets its pages of a step in one statement, and
--     a number is in one of them.
create table core.sequencer (
  is_only        boolean      primary key default true,
  step           bigint       not null default 0,
  after_seq      bigint       not null default 0,
  high_seq       bigint       not null default 0,
  late_seqs      bigint[]     not null default '{}',
  feed_base      bigint       not null default 0,
  last_snapshot  pg_snapshot,
  constraint sequencer_has_one_row check (is_only)
);
comment on table core.sequencer is
  'The state of the sequencer. An advisory lock lets one run at a time (rules.try_sequencer_lock).';
comment on column core.sequencer.step is 'How many steps have found events.';
comment on column core.sequencer.after_seq is 'The high_seq of the step before.';
comment on column core.sequencer.high_seq is
  'Events up to this number are sequenced, except for the numbers in core.event_gap.';
comment on column core.sequencer.late_seqs is
  'Numbers that this step took from core.event_gap: their events were committed late.';
comment on column core.sequencer.feed_base is
  'Feeds start after this position, which is above every cursor that a restore made invalid.';
comment on column core.sequencer.last_snapshot is
  'Snapshot of the last step that found something. A missing number can only appear if its '
  'transaction ended after that. Null: search all gaps.';

insert into core.sequencer default values;

create table core.event_gap (
  event_seq     bigint  primary key,
  drawn_before  xid8    not null
);
comment on table core.event_gap is
  'Event numbers that were drawn but are not visible yet: their transactions commit late or were '
  'rolled back.';
comment on column core.event_gap.drawn_before is
  'A transaction with a lower ID drew the number. Once all of those have ended, a number that is '
  'still missing was rolled back.';
create index event_gap_by_drawn_before on core.event_gap (drawn_before);

create function core.check_event_gaps() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_high  bigint;
begin
  -- waits for a step that another session takes without the advisory lock
  select s.high_seq into strict v_high from core.sequencer s for no key update;
  if exists (select from new_gap n where n.event_seq <= v_high) then
    raise exception 'a number that the sequencer has passed cannot be missing again'
      using errcode = 'check_violation', constraint = 'gap_is_above_the_sequencer';
  end if;
  return null;
end
$$;
comment on function core.check_event_gaps() is
  'Trigger: a number becomes a gap before the sequencer passes it, and never again.';

create trigger gap_is_above_the_sequencer
after insert on core.event_gap
referencing new table as new_gap
for each statement execute function core.check_event_gaps();

create trigger event_gap_is_immutable before update or truncate on core.event_gap
for each statement execute function core.refuse_change();

-- Takes the late numbers out of the gaps itself, so that no step can take them again.
create function core.check_step() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_taken  int := 0;
begin
  if (new.step, new.after_seq, new.high_seq, new.late_seqs)
     is not distinct from (old.step, old.after_seq, old.high_seq, old.late_seqs)
  then
    return new;
  end if;
  if cardinality(new.late_seqs) > 0 then
    delete from core.event_gap g where g.event_seq = any (new.late_seqs);
    get diagnostics v_taken = row_count;
  end if;
  if new.step <> old.step + 1
     or new.after_seq <> old.high_seq
     or new.high_seq < old.high_seq
     or v_taken <> cardinality(new.late_seqs)
  then
    raise exception 'a step of the sequencer begins where the step before ended'
      using errcode = 'check_violation', constraint = 'sequencer_goes_forward';
  end if;
  return new;
end
$$;
comment on function core.check_step() is
  'Trigger: a step takes numbers that no earlier step has taken.';

create trigger sequencer_goes_forward
before update of step, after_seq, high_seq, late_seqs on core.sequencer
for each row execute function core.check_step();

create trigger sequencer_is_kept before delete or truncate on core.sequencer
for each statement execute function core.refuse_change();

create function core.is_ascending(p_numbers bigint[]) returns boolean
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  v_before  bigint := p_numbers[1] - 1;
  v_number  bigint;
begin
  foreach v_number in array p_numbers loop
    if (v_number > v_before) is not true then
      return false;
    end if;
    v_before := v_number;
  end loop;
  return true;
end
$$;
comment on function core.is_ascending(bigint[]) is
  'Check: each number is higher than the one before it.';

create domain core.event_list as bigint[]
  constraint page_has_1_to_1000_events check (cardinality(value) between 1 and 1000)
  constraint events_of_a_page_ascend check (core.is_ascending(value));
comment on domain core.event_list is
  'The events of a page, as their numbers: event_seq of core.event or core.ledger_entry.';

create function core.find_stray_event(p_event_seqs bigint[]) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select min(x.event_seq)
    from core.sequencer s
    cross join lateral unnest(p_event_seqs) x (event_seq)
    where case
      when x.event_seq > s.after_seq then
        x.event_seq > s.high_seq
        or exists (select from core.event_gap g where g.event_seq = x.event_seq)
      else x.event_seq <> all (s.late_seqs)
    end);
end
$$;
comment on function core.find_stray_event(bigint[]) is
  'The lowest of these numbers that the current step of the sequencer has not taken, or null.';
