// Streams a file of a daily statement. Each page is a separate SQL query, so a slow reader holds no database connection
// and only one page of memory.
import { createHash } from "node:crypto";
import type { Gate, StatementFile } from "../gate/gate.ts";
import type { Logger } from "../common/log.ts";
import type { Answer } from "./problem.ts";
import { renderFile } from "../formats/statement-csv.ts";

/** The console reads pages with other keys than the API. */
type Described = Omit<StatementFile, "tenant_id" | "distributor_id" | "rows">;
type ReadPage<File> = { statementPage(file: File, ...range: Range): ReturnType<Gate["statementPage"]> };
type Range = [after: number, limit: number, deadline: number];
export type DownloadParts<File = StatementFile> = { gate: ReadPage<File>; log: Logger; requestId: string };
type Opened = { ifNoneMatch: string | undefined; isHead: boolean; deadline: number };

// The time limit of each later page.
const pageWithinMs = 3_500;

// Fetches the first page before anything is sent, so that a failing database results in a 503 instead of an empty file.
// A later error cuts the connection before content-length is reached.
export async function openDownload<File extends Described>(
  { gate, log, requestId }: DownloadParts<File>,
  file: File,
  { ifNoneMatch, isHead, deadline }: Opened,
): Promise<Answer> {
  const same = {
    "content-type": "text/csv; charset=utf-8",
    "cache-control": "private, no-cache",
    etag: `"${file.sha256}"`,
  };
  if (matches(ifNoneMatch, file.sha256)) return { status: 304, code: null, body: "", headers: same };
  const headers = {
    ...same,
    "content-length": String(file.bytes),
    "content-disposition": `attachment; filename="${file.kind}-${file.business_date}-${file.distributor}.csv"`,
  };
  if (isHead) return { status: 200, code: null, body: "", headers };

  let isFirst = true;
  const pieces = renderFile(file.kind, (after, limit) => {
    const until = isFirst ? deadline : performance.now() + pageWithinMs;
    isFirst = false;
    return gate.statementPage(file, after, limit, until);
  });
  const first = await pieces.next();

  async function* stream(): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    let bytes = 0;
    try {
      for (let next = first; next.done !== true; next = await pieces.next()) {
        bytes += next.value.bytes.length;
        hash.update(next.value.bytes);
        // Sends the last piece only if the whole file has the size and hash that were recorded when it became ready.
        const isWhole = bytes < file.bytes || (bytes === file.bytes && hash.digest("hex") === file.sha256);
        if (!isWhole)
          throw new Error("the file differs from the one that was closed; run: npm run statements -- verify");
        yield next.value.bytes;
      }
      if (bytes < file.bytes) throw new Error(`the file ends after ${bytes} of ${file.bytes} bytes`);
    } catch (error) {
      log.error({ request_id: requestId, err: error }, "download cut short");
      throw error;
    }
  }

  return { status: 200, code: null, body: ReadableStream.from(stream()), headers };
}

// Treats weak and strong tags alike, because our tag is a hash of the bytes.
function matches(ifNoneMatch: string | undefined, sha256: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(`"${sha256}"`);
}
