// Numbers of the documents that are no limit of the service, with the reason.
export const otherNumbers: Record<string, string[]> = {
  "the form of an id, shown by test/common/id.test.ts": ["26 lower-case letters and digits"],
  "odds and sizes that follow from the form of a code": [
    "16 letters and digits in a row",
    "ID of 32 hexadecimal digits",
    "64 KiB of English",
    "about 4,500",
    "over the first 12 characters",
  ],
  "an example of a header": ["all are back in 48 seconds"],
  "the form of a currency": ["three-letter code"],
  "a property of IEEE doubles": ["up to three decimals exactly"],
  "advice to a till": ["if no answer came within 5 seconds, and after 408, 429, 500, 503"],
  "advice to a receiver": ["more than 5 minutes off"],
  "the length of a day": ["It lasts 24 hours, or 23 or 25", "can cover more than 24 hours"],
  "other software, and advice on it": [
    "by default for two hours",
    "A read time-out of 10 s between two packets",
    "at least 4 GB",
    "is 4 GB",
    "at most 100 MB of log",
    "`PORT` | 8080 |",
  ],
  "several processes": ["three times as much"],
  "recovery: silent-database.test.ts, silent-connections.test.ts and kill.test.ts, measured by npm run chaos": [
    "then succeed within 5 s",
    "notice it within 3 s",
    "Calls succeed again within 5 s, background work within 15 s",
    "minting, delivery and the feed within 15 s",
    "ends its session after 8 s; others continue within 15 s",
  ],
  "graphile-worker unlocks a job whose worker is gone": ["runs again after 4 hours"],
  "the longest stop of a program, 9 s: test/common/program.test.ts": ["ends each program within 10 s"],
  "migrate: test/migration/migrate.test.ts and the sabotage 'migrate waits only briefly for locks'": [
    "never waits longer than 200 ms",
    "waits at most 200 ms",
  ],
  "a full disk: test/operations/full-disk.test.ts, test/gate/disk-watch.test.ts": [
    "returns 503 for 5 s after a refused call",
    "at least 32 MB for the start",
    "With 32 MB free",
  ],
  "the log and the metrics: test/common/log.test.ts, test/http/metrics.test.ts": [
    "at most 50 ms late",
    "asks the database at most every 5 s and waits at most 2.5 s",
  ],
};
