// Where business days begin and end: the pure SQL functions, on unusual days of real time zones.
import t, { type Test } from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDatabase } from "../support/database.ts";

type Instant = { at: number; day: string; due: string[] };
type Day = [date: string, minutes: number];

const minute = 60;
/** Days from midnight to midnight: where, since when, and the minutes of each. */
type Zone = [zone: string, from: string, days: Record<string, number>];

const zones: Zone[] = [
  // A day of 23 h.
  ["Europe/Berlin", "2026-03-27T23:00Z", { "2026-03-28": 1440, "2026-03-29": 1380, "2026-03-30": 1440 }],
  // A day of 25 h.
  ["Europe/Berlin", "2026-10-23T22:00Z", { "2026-10-24": 1440, "2026-10-25": 1500, "2026-10-26": 1440 }],
  // A day of 24.5 h.
  ["Australia/Lord_Howe", "2026-04-03T13:00Z", { "2026-04-04": 1440, "2026-04-05": 1470, "2026-04-06": 1440 }],
  // A day without midnight.
  ["America/Santiago", "2026-09-05T04:00Z", { "2026-09-05": 1440, "2026-09-06": 1380, "2026-09-07": 1440 }],
  // A last hour that repeats.
  ["Africa/Cairo", "2026-10-27T21:00Z", { "2026-10-28": 1440, "2026-10-29": 1500, "2026-10-30": 1440 }],
  // An offset of 5:45.
  ["Asia/Kathmandu", "2026-06-14T18:15Z", { "2026-06-15": 1440, "2026-06-16": 1440, "2026-06-17": 1440 }],
  // A date that is skipped.
  ["Pacific/Apia", "2011-12-28T10:00Z", { "2011-12-28": 1440, "2011-12-29": 1440, "2011-12-31": 1440 }],
  // The clock goes from 00:01 back to 23:01 of the day before: one minute of the 7th, then 59 minutes of the 6th.
  ["America/St_Johns", "2010-11-05T02:30Z", { "2010-11-05": 1440, "2010-11-06": 1499, "2010-11-07": 1441 }],
];

let owner: Database;
t.before(async () => {
  const { address, drop } = await createDatabase();
  owner = connect(address, { name: "coupon test", role: "coupon_owner", max: 1 });
  t.teardown(async () => {
    await owner.end();
    await drop();
  });
});

// For each second, its local date and the dates that are due to close at it.
async function readInstants(zone: string, seconds: number[], dates: string[]): Promise<Instant[]> {
  return owner.rows<Instant>(
    `select s.at, rules.compute_local_date(to_timestamp(s.at), $2)::text as day,
            array(select d::text from unnest($3::text[]::date[]) d
                  where rules.find_due_date(d, to_timestamp(s.at), $2) is not null) as due
     from unnest($1::text[]::int[]) s (at) order by s.at`,
    [seconds, zone, dates],
  );
}

// Each minute of the days, and each second around every change of the local date.
async function walk(t: Test, zone: string, from: string, days: Day[]) {
  const begin = Date.parse(from) / 1000;
  const end = begin + days.reduce((sum, [, minutes]) => sum + minutes, 0) * minute;
  const dates = [...days.map(([date]) => date), new Date((end + 12 * 3600) * 1000).toISOString().slice(0, 10)];
  const grid = Array.from({ length: (end - begin) / minute + 2 }, (_, index) => begin + index * minute);
  const coarse = await readInstants(zone, grid, dates);
  for (const [date, minutes] of days) {
    const found = coarse.filter(({ at, day }) => day === date && at < end).length;
    t.equal(found, minutes, `${date} has ${minutes} minutes`);
  }
  const changes = coarse.filter(({ day }, index) => index > 0 && day !== coarse[index - 1]!.day).map(({ at }) => at);
  const near = changes.flatMap((at) => Array.from({ length: 90 }, (_, index) => at - 30 + index));
  const instants = await readInstants(zone, [...new Set([...grid, ...near])], dates);
  const rows = await owner.rows<{ date: string; next: string }>(
    "select d as date, rules.find_next_business_date(d::date, $2)::text as next from unnest($1::text[]) d",
    [dates, zone],
  );
  const next = new Map(rows.map((row) => [row.date, row.next]));
  for (const [index, [date]] of days.slice(1).entries())
    t.equal(next.get(days[index]![0]), date, `after ${days[index]![0]} comes ${date}`);
  return { instants, next };
}

// Closes due days as a worker does that looks once per pause. Returns when each day was closed.
function closeDays(t: Test, instants: Instant[], next: Map<string, string>, first: string, pause: number) {
  const last = instants.at(-1)!.at;
  let [open, lookAt] = [first, instants[0]!.at];
  const closed = new Map<string, number>();
  for (const { at, day, due } of instants) {
    const postedOn = day > open ? day : open;
    if (closed.has(postedOn)) t.fail(`${at} is posted on ${postedOn}, which is closed`);
    if (at < lookAt && at < last) continue;
    lookAt = at + pause;
    for (; due.includes(open); open = next.get(open)!) closed.set(open, at);
  }
  return closed;
}

for (const [zone, from, example] of zones) {
  const days: Day[] = Object.entries(example);
  t.test(`Every instant belongs to one business day, and days close in order: ${zone}, ${from}`, async (t) => {
    const { instants, next } = await walk(t, zone, from, days);
    const first = days[0]![0];
    // A worker looks every second, about every hour, less than once a day, or only at the end.
    for (const pause of [1, 61 * minute, 26 * 60 * minute, instants.at(-1)!.at]) {
      const closed = closeDays(t, instants, next, first, pause);
      t.strictSame(
        [...closed.keys()],
        days.slice(0, closed.size).map(([date]) => date),
        "in order, each once",
      );
      t.ok(closed.size >= days.length - 1, "all days that are over");
      if (pause > 1) continue;
      const begins = days.slice(1).map(([date]) => instants.find(({ day }) => day === date)!.at);
      t.strictSame(
        [...closed.values()].slice(0, begins.length),
        begins.map((at) => at + 5),
        "a day closes 5 s after the next one begins",
      );
    }
  });
}
