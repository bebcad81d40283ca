// Where business days begin and end: the pure functions, walked through the strangest days of real zones. Each instant
// belongs to exactly one business day, and days close in order, however often somebody looks.
import t from "tap";
import { connect } from "../../src/database/connect.ts";
import { createDatabase } from "../support/database.ts";

type Instant = { at: number; day: string; due: string[] };
type Day = [date: string, minutes: number];

const minute = 60;
const zones: { zone: string; from: string; what: string; days: Day[] }[] = [
  {
    zone: "Europe/Berlin",
    from: "2026-03-27T23:00:00Z",
    what: "23 h",
    days: [
      ["2026-03-28", 1440],
      ["2026-03-29", 1380],
      ["2026-03-30", 1440],
    ],
  },
  {
    zone: "Europe/Berlin",
    from: "2026-10-23T22:00:00Z",
    what: "25 h",
    days: [
      ["2026-10-24", 1440],
      ["2026-10-25", 1500],
      ["2026-10-26", 1440],
    ],
  },
  {
    zone: "Australia/Lord_Howe",
    from: "2026-04-03T13:00:00Z",
    what: "24.5 h",
    days: [
      ["2026-04-04", 1440],
      ["2026-04-05", 1470],
      ["2026-04-06", 1440],
    ],
  },
  {
    zone: "America/Santiago",
    from: "2026-09-05T04:00:00Z",
    what: "no midnight",
    days: [
      ["2026-09-05", 1440],
      ["2026-09-06", 1380],
      ["2026-09-07", 1440],
    ],
  },
  {
    zone: "Africa/Cairo",
    from: "2026-10-27T21:00:00Z",
    what: "its last hour twice",
    days: [
      ["2026-10-28", 1440],
      ["2026-10-29", 1500],
      ["2026-10-30", 1440],
    ],
  },
  {
    zone: "Asia/Kathmandu",
    from: "2026-06-14T18:15:00Z",
    what: "a quarter to",
    days: [
      ["2026-06-15", 1440],
      ["2026-06-16", 1440],
      ["2026-06-17", 1440],
    ],
  },
  {
    zone: "Pacific/Apia",
    from: "2011-12-28T10:00:00Z",
    what: "no 30th",
    days: [
      ["2011-12-28", 1440],
      ["2011-12-29", 1440],
      ["2011-12-31", 1440],
    ],
  },
  // From 00:01 back to 23:01 of the day before: one minute of the 7th, then 59 of the 6th again.
  {
    zone: "America/St_Johns",
    from: "2010-11-05T02:30:00Z",
    what: "back over midnight",
    days: [
      ["2010-11-05", 1440],
      ["2010-11-06", 1499],
      ["2010-11-07", 1441],
    ],
  },
];

t.test("every instant belongs to one business day, and days close in order", async (t) => {
  const { address, drop } = await createDatabase();
  const owner = connect(address, { name: "coupon test", role: "coupon_owner", max: 1 });
  t.teardown(async () => {
    await owner.end();
    await drop();
  });

  async function walk(zone: string, seconds: number[], dates: string[]): Promise<Instant[]> {
    return owner.rows<Instant>(
      `select s.at, rules.compute_local_date(to_timestamp(s.at), $2)::text as day,
              array(select d::text from unnest($3::text[]::date[]) d where rules.find_due_date(d, to_timestamp(s.at), $2) is not null) as due
       from unnest($1::text[]::int[]) s (at) order by s.at`,
      [seconds, zone, dates],
    );
  }

  for (const { zone, from, what, days } of zones) {
    await t.test(`${zone}, ${what}`, async (t) => {
      const begin = Date.parse(from) / 1000;
      const end = begin + days.reduce((sum, [, minutes]) => sum + minutes, 0) * minute;
      const dates = [...days.map(([date]) => date), new Date((end + 12 * 3600) * 1000).toISOString().slice(0, 10)];
      const grid = Array.from({ length: (end - begin) / minute + 2 }, (_, index) => begin + index * minute);
      const coarse = await walk(zone, grid, dates);
      for (const [date, minutes] of days)
        t.equal(
          coarse.filter(({ at, day }) => day === date && at < end).length,
          minutes,
          `${date} has ${minutes} minutes`,
        );

      // Second by second around each change of the local day.
      const changes = coarse
        .filter(({ day }, index) => index > 0 && day !== coarse[index - 1]!.day)
        .map(({ at }) => at);
      const near = changes.flatMap((at) => Array.from({ length: 90 }, (_, index) => at - 30 + index));
      const instants = await walk(zone, [...new Set([...grid, ...near])], dates);
      const next = new Map(
        (
          await owner.rows<{ date: string; next: string }>(
            "select d::text as date, rules.find_next_business_date(d::date, $2)::text as next from unnest($1::text[]) d",
            [dates, zone],
          )
        ).map((row) => [row.date, row.next]),
      );
      days
        .slice(1)
        .forEach(([date], index) => t.equal(next.get(days[index]![0]), date, `after ${days[index]![0]} comes ${date}`));

      // Somebody looks at every instant, once an hour or so, once in more than a day, or only in the end.
      const last = instants.at(-1)!.at;
      for (const pause of [1, 61 * minute, 26 * 60 * minute, last]) {
        let [open, lookAt] = [days[0]![0], begin];
        const closed = new Map<string, number>();
        for (const { at, day, due } of instants) {
          const postedOn = day > open ? day : open;
          if (closed.has(postedOn)) t.fail(`${at} is posted on ${postedOn}, which is closed`);
          if (at < lookAt && at < last) continue;
          lookAt = at + pause;
          for (; due.includes(open); open = next.get(open)!) closed.set(open, at);
        }
        t.strictSame(
          [...closed.keys()],
          days.slice(0, closed.size).map(([date]) => date),
          "in order, each once",
        );
        t.ok(closed.size >= days.length - 1, "all that are over");
        if (pause > 1) continue;
        const begins = days.slice(1).map(([date]) => instants.find(({ day }) => day === date)!.at);
        t.strictSame(
          [...closed.values()].slice(0, begins.length),
          begins.map((at) => at + 5),
          "when the next has lasted for 5 s",
        );
      }
    });
  }
});
