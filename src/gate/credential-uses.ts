// Which credentials were used, to the hour. A call only marks its credential in memory. Once a minute, one statement
// writes those that this process has not yet written in this hour; the database skips those that another process wrote.
// A crash loses the marks of a minute.
import type { Logger } from "../common/log.ts";

export type Used = { tenantId: number; credentialId: number };
export type CredentialUses = {
  /** On the hot path. */
  mark(used: Used): void;
  /** Writes what is marked. Never rejects: what fails is tried again with the next one. */
  write(): Promise<void>;
  stop(): Promise<void>;
};
type NoteUses = (used: Used[], deadline: number) => Promise<number>;
type Parts = { gate: { noteUses: NoteUses }; log: Logger; everyMs?: number; uptime?: () => number };

const mostAtOnce = 1_000;
const writeWithinMs = 2_000;

// Credentials of two cells may have the same number, their tenants have not.
const keyOf = ({ tenantId, credentialId }: Used): string => `${tenantId} ${credentialId}`;

export function createCredentialUses(parts: Parts): CredentialUses {
  const { gate, log, everyMs = 60_000, uptime = () => performance.now() } = parts;
  const marked = new Map<string, Used>();
  // Those that are written in this hour of the database's clock.
  const written = new Set<string>();
  let hourEndsAt = 0;
  let writing: Promise<void> | null = null;

  async function writeMarked(): Promise<void> {
    const startedAt = uptime();
    if (startedAt >= hourEndsAt) written.clear();
    for (const key of written) marked.delete(key);
    const batch = [...marked.values()].slice(0, mostAtOnce);
    if (batch.length === 0) return;
    for (const used of batch) marked.delete(keyOf(used));
    try {
      hourEndsAt = startedAt + (await gate.noteUses(batch, performance.now() + writeWithinMs));
      for (const used of batch) written.add(keyOf(used));
    } catch (error) {
      for (const used of batch) marked.set(keyOf(used), used);
      log.warn({ err: error }, "the last use of credentials was not noted; it is tried again");
    }
  }

  const write = () => (writing ??= writeMarked().finally(() => (writing = null)));
  const timer = setInterval(write, everyMs).unref();
  return {
    mark(used) {
      marked.set(keyOf(used), used);
    },
    write,
    async stop() {
      clearInterval(timer);
      await writing;
      await write();
    },
  };
}
