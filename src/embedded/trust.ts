// What lies in DATA_DIR decides who can make codes and who owns the database. So a program trusts only what no other
// user could have put there. As ssh does, it refuses by owner and mode, and names both.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
  type Stats,
} from "node:fs";
import path from "node:path";
import { ConfigError } from "../config/config.ts";

const self = process.getuid?.() ?? 0;
export const isRoot = process.getuid?.() === 0;

/** Who owns the program's code decides what it does anyway. */
const checkout = path.resolve(import.meta.dirname, "../..");

/**
 * Refuses a folder that another user may change. For root, the folders above it count too: their owner could replace
 * it, even while root works in it. A folder need not exist yet.
 */
export function checkFolder(folder: string): void {
  const above = listAbove(folder);
  const real = realpathSync(above.find((each) => existsSync(each))!);
  const checked = isRoot ? new Set([...above, ...listAbove(real)]) : [folder, real];
  for (const each of checked) {
    const found = lstatSync(each, { throwIfNoEntry: false });
    const isItself = each === folder || each === real;
    if (found === undefined || (!isItself && `${checkout}/`.startsWith(each === "/" ? each : `${each}/`))) continue;
    // In a folder such as /tmp, only its owner may replace an entry.
    const isSticky = !isItself && (found.mode & 0o1000) !== 0;
    const isWritable = found.isDirectory() && !isSticky && (found.mode & 0o022) !== 0;
    if (isWritable || ![0, self].includes(found.uid))
      refuse(each, found, `it must belong to user ${self}, and no other user may write in it (chmod go-w)`);
  }
}

const listAbove = (folder: string): string[] =>
  folder === path.dirname(folder) ? [folder] : [folder, ...listAbove(path.dirname(folder))];

/** Names the owner and the mode, which an operator has to change. */
export function refuse(file: string, { uid, mode }: Stats, rule: string): never {
  const octal = (mode & 0o7777).toString(8).padStart(4, "0");
  throw new ConfigError(`${file} belongs to user ${uid} and has mode ${octal}: ${rule}`);
}

/** Returns null if there is no such file. Follows no link, and waits for no writer of a pipe. */
export function readSecretFile(file: string): string | null {
  let opened: number;
  try {
    opened = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw new ConfigError(`${file} must not be a link`);
    throw error;
  }
  try {
    const found = fstatSync(opened);
    if (!found.isFile()) throw new ConfigError(`${file} must be a file`);
    if (found.uid !== self || (found.mode & 0o077) !== 0)
      refuse(file, found, `it holds secrets, so it must belong to user ${self} and have mode 0600`);
    return readFileSync(opened, "utf8");
  } finally {
    closeSync(opened);
  }
}

/**
 * Writes a draft and links it into place. If several processes start at once, one wins and the others read its file. A
 * crash never leaves half a file, and an existing file stays as it is.
 */
export function makeSecretFile(file: string, text: string): void {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    // equivalent mutant (literal true): only a power failure shows it
    writeFileSync(draft, text, { flag: "wx", mode: 0o600, flush: true });
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  // A power failure must not leave a database without its key.
  const folder = openSync(path.dirname(file), "r");
  // equivalent mutant (statement): only a power failure shows it
  fsyncSync(folder);
  closeSync(folder);
}
