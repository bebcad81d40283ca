// statement: the time from the end of a business day with many entries until its files are ready, and the time of the
// download.
import { createHash } from "node:crypto";
import { daySeconds, noonOffset, setZone, zoneOf } from "../../support/business-days.ts";
import { openDownload } from "../../support/client.ts";
import { distributorOfDay, type Environment, type Run } from "./environment.ts";
import { fillRedemptions } from "./fill.ts";
import { timed, type Row } from "./measure.ts";

export async function benchStatement({ open, size }: Run): Promise<Row[]> {
  const environment = await open();
  // A time zone where it is noon, today or yesterday. A day further east it is noon of the next day, so the day is
  // over.
  const offset = noonOffset() > 0 ? noonOffset() - daySeconds : noonOffset();
  const moveTo = (zone: string) => setZone({ owner: environment.database }, distributorOfDay, zone);
  await moveTo(zoneOf(offset));
  const batch = await environment.release(size, distributorOfDay);
  const filled = await fillRedemptions(environment, [batch]);
  await environment.untilCaughtUp();

  const ready = `report.statement where distributor = '${distributorOfDay}' and ready_at is not null`;
  const closedSeconds = await timed(async () => {
    await moveTo(zoneOf(offset + daySeconds));
    await environment.until("the statement", `count(*) > 0 as done from ${ready}`);
  });
  const [day] = await environment.database.rows<{ date: string }>(`select business_date::text as date from ${ready}`);
  const target = `/v1/reconciliations/${day!.date}/detail?distributor=${distributorOfDay}`;
  let file = { lines: 0, bytes: 0 };
  const downloadSeconds = await timed(async () => (file = await download(environment, target)));
  // One line is the header.
  if (file.lines - 1 !== filled) throw new Error(`downloaded ${file.lines - 1} of ${filled} entries`);
  return [
    {
      name: `a day of ${filled} entries`,
      "ready after s": closedSeconds,
      "downloaded in s": downloadSeconds,
      MiB: file.bytes / 2 ** 20,
    },
  ];
}

async function download({ url, credential }: Environment, path: string) {
  const answer = await openDownload({ url, path, ...credential });
  const hash = createHash("sha256");
  let [lines, bytes] = [0, 0];
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
  }
  if (hash.digest("hex") !== answer.headers.etag?.replaceAll('"', ""))
    throw new Error(`answered ${answer.statusCode}, ${bytes} bytes that are not those of its ETag`);
  return { lines, bytes };
}
