// The download of a statement. Its body fails at the end if a byte is missing or wrong.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { DownloadError } from "./errors.ts";

export type Download = {
  /** Such as `detail-2026-11-22-pty_dist.csv`. */
  fileName: string;
  bytes: number;
  sha256: string;
  /** Throws a DownloadError at its end if the bytes are not those of the file. Keep the file only after its end. */
  body: Readable;
};

/** `timeoutMs`: for each wait for bytes. `sha256`: what the list of statements says, if the caller knows it. */
export function openDownload(response: IncomingMessage, timeoutMs: number, sha256?: string): Download {
  const { etag = "", "content-length": length = "", "content-disposition": disposition = "" } = response.headers;
  const tagged = /^"([0-9a-f]{64})"$/.exec(etag)?.[1];
  if (tagged === undefined || !/^\d+$/.test(length)) {
    response.destroy();
    throw new DownloadError("the answer does not say which bytes it has");
  }
  const download = { bytes: Number(length), sha256: sha256 ?? tagged };
  const body = Readable.from(readChecked(response, timeoutMs, download), { objectMode: false });
  // A body that is never read has not begun to read the response either.
  body.once("close", () => response.destroy());
  return { fileName: /filename="([^"]*)"/.exec(disposition)?.[1] ?? "", ...download, body };
}

async function* readChecked(
  response: IncomingMessage,
  timeoutMs: number,
  { bytes, sha256 }: Pick<Download, "bytes" | "sha256">,
): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer, void>;
  let received = 0;
  for (;;) {
    // Runs only while we wait for the network. A time-out of the socket would also count while the reader pauses.
    const giveUp = () => response.destroy(new Error(`no bytes within ${timeoutMs} ms`));
    const timer = setTimeout(giveUp, timeoutMs);
    const next = chunks.next().finally(() => clearTimeout(timer));
    const chunk = await next.catch((cause: unknown) => {
      // Node also ends here if fewer bytes arrive than content-length says.
      throw new DownloadError(`the download broke off after ${received} of ${bytes} bytes`, { cause });
    });
    if (chunk.done) break;
    hash.update(chunk.value);
    received += chunk.value.length;
    yield chunk.value;
  }
  if (hash.digest("hex") !== sha256) throw new DownloadError("the sha256 of the download is wrong");
}
