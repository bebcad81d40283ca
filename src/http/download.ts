// A statement's file as an answer: streamed page by page as the caller reads, each page a statement of its own, so that
// a slow reader holds no connection of the database and no more than a page of memory.
import { createHash } from "node:crypto";
import type { Gate, StatementFile } from "../gate/gate.ts";
import type { Logger } from "../common/log.ts";
import type { Answer } from "./problem.ts";
import { renderFile } from "../common/statement-csv.ts";

export type DownloadParts = { gate: Pick<Gate, "statementPage">; log: Logger; requestId: string };
type Opened = { ifNoneMatch: string | undefined; deadline: number; pageWithinMs: number };

// `file` is what the database answered. The first page is fetched before anything is sent, so that a database that is
// away is a 503 and not an empty file; an error after that cuts the connection, short of content-length.
export async function openDownload(
  { gate, log, requestId }: DownloadParts,
  file: StatementFile,
  { ifNoneMatch, deadline, pageWithinMs }: Opened,
): Promise<Answer> {
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "cache-control": "private, no-cache",
    etag: `"${file.sha256}"`,
  };
  if (matches(ifNoneMatch, file.sha256)) return { status: 304, code: null, body: "", headers };

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
        // The last piece goes out only when the whole is what was measured at the close.
        const isWhole = bytes < file.bytes || (bytes === file.bytes && hash.digest("hex") === file.sha256);
        if (!isWhole) throw new Error("the file is not the one that was closed: npm run statements -- verify");
        yield next.value.bytes;
      }
      if (bytes < file.bytes) throw new Error(`the file ends after ${bytes} of ${file.bytes} bytes`);
    } catch (error) {
      log.error({ request_id: requestId, err: error }, "download cut short");
      throw error;
    }
  }

  return {
    status: 200,
    code: null,
    body: ReadableStream.from(stream()),
    headers: {
      ...headers,
      "content-length": String(file.bytes),
      "content-disposition": `attachment; filename="${file.kind}-${file.business_date}.csv"`,
    },
  };
}

// Weak and strong compare the same here: our tag is of the bytes.
function matches(ifNoneMatch: string | undefined, sha256: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(`"${sha256}"`);
}
