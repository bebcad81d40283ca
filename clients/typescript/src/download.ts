// The download of a statement or of codes. Its body fails at the end if a byte is missing or wrong.
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

/** A file of codes. It has no sha256, because each one is encrypted anew; `age -d` notices a wrong byte. */
export type CodesDownload = Omit<Download, "sha256">;

/** `timeoutMs`: for each wait for bytes. `sha256`: what the list of statements says, if the caller knows it. */
export function openDownload(response: IncomingMessage, timeoutMs: number, sha256?: string): Download {
  const tagged = /^"([0-9a-f]{64})"$/.exec(response.headers.etag ?? "")?.[1];
  if (tagged === undefined) refuse(response);
  const expected = sha256 ?? tagged;
  return { ...openBody(response, timeoutMs, expected), sha256: expected };
}

export function openCodes(response: IncomingMessage, timeoutMs: number): CodesDownload {
  return openBody(response, timeoutMs);
}

function refuse(response: IncomingMessage): never {
  response.destroy();
  throw new DownloadError("the answer does not say which bytes it has");
}

function openBody(response: IncomingMessage, timeoutMs: number, sha256?: string): CodesDownload {
  const { "content-length": length = "", "content-disposition": disposition = "" } = response.headers;
  if (!/^\d+$/.test(length)) refuse(response);
  const bytes = Number(length);
  const body = Readable.from(readChecked(response, timeoutMs, bytes, sha256), { objectMode: false });
  // A body that is never read has not begun to read the response either.
  body.once("close", () => response.destroy());
  return { fileName: /filename="([^"]*)"/.exec(disposition)?.[1] ?? "", bytes, body };
}

async function* readChecked(
  response: IncomingMessage,
  timeoutMs: number,
  bytes: number,
  sha256?: string,
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
  if (sha256 !== undefined && hash.digest("hex") !== sha256)
    throw new DownloadError("the sha256 of the download is wrong");
}
