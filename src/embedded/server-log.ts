// The log of the embedded server, in its folder. Called as the user of the server.
import { constants, fchmodSync, lstatSync, openSync, readFileSync, renameSync } from "node:fs";
import { EmbeddedError, type Home, logFile } from "./data-directory.ts";

/** Keeps one old log. The log is small, because the server logs no statements. */
export function openLog(home: Home): number {
  const file = logFile(home);
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) throw new EmbeddedError(`${file} must not be a link`);
  // An older version wrote it as root.
  const isForeign = found !== undefined && found.uid !== process.geteuid?.();
  if (isForeign || (found?.size ?? 0) > 10_000_000) renameSync(file, `${file}.1`);
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  const log = openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  fchmodSync(log, 0o600);
  return log;
}

export const lastLines = (home: Home): string =>
  readFileSync(logFile(home), "utf8").trimEnd().split("\n").slice(-5).join("\n");
