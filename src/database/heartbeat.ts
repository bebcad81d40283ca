// Notices within seconds that connections went silent: a firewall forgot them, or the server's machine vanished. Then
// nothing resets them, and statements on them would wait for their deadlines, one after the other.
//
// One session sends an empty query again and again. On a busy machine, a late answer proves little. So this opens a
// second session, and the first answer decides: if the newer session answers first, the older one is silent, and so are
// other connections of its age. Each step has a limit, and the sum of these limits is the promised time.
import { beforeDeadline } from "../common/deadline.ts";
import type { Session } from "./types.ts";

export const heartbeatLimits = {
  /** The pause between two queries. */
  everyMs: 500,
  /** An answer that takes longer is late. */
  lateAfterMs: 750,
  /** A new session that does not answer within this time is given up. */
  openWithinMs: 1_500,
};
/** The longest time from the moment a session goes silent until it is given up. */
export const silentWithinMs = Object.values(heartbeatLimits).reduce((sum, ms) => sum + ms);

export type Heartbeat = { stop(): Promise<void> };
type Parts<T> = {
  open: () => Session;
  /** The first statement of each session. */
  begin: (session: Session) => Promise<T>;
  onBegin?: (begun: T) => void;
  /** The session is lost. onBegin follows when another one has begun. */
  onEnd?: () => void;
  /** The session was silent, and now another one answers: older connections are silent too. Comes before onBegin. */
  onSilent: () => void;
};
type Begun<T> = { session: Session; value: T };
type Pulse = "answered" | "closed" | "late";

export function startHeartbeat<T>(parts: Parts<T>): Heartbeat {
  const { onBegin, onEnd, onSilent } = parts;
  const pause = createPause(heartbeatLimits.everyMs);
  let isStopped = false;
  let wasSilent = false;
  const running = run();

  async function run(): Promise<void> {
    let current: Begun<T> | null = null;
    while (!isStopped) {
      current ??= accept(await tryToBegin(parts));
      await pause.wait(current?.session.lost);
      if (current !== null && !isStopped) current = await check(current);
    }
    await current?.session.end();
  }

  function accept(begun: Begun<T> | null): Begun<T> | null {
    if (begun === null || isStopped) return begun;
    if (wasSilent) onSilent();
    wasSilent = false;
    onBegin?.(begun.value);
    return begun;
  }

  // Returns the session to go on with, or null if there is none.
  async function check(current: Begun<T>): Promise<Begun<T> | null> {
    const answer = current.session.rows("select").then(
      (): Pulse => "answered",
      (): Pulse => "closed",
    );
    const lateAt = performance.now() + heartbeatLimits.lateAfterMs;
    let pulse = await beforeDeadline(answer, lateAt).catch((): Pulse => "late");
    let next: Begun<T> | null = null;
    if (pulse === "late") {
      const opening = tryToBegin(parts);
      pulse = await Promise.race([answer, opening.then((): Pulse => "late")]);
      if (pulse === "late") next = await opening;
      else void opening.then((begun) => begun?.session.end());
    }
    if (pulse === "answered") return current;
    wasSilent = pulse === "late";
    void current.session.end();
    onEnd?.();
    return accept(next);
  }

  return {
    async stop() {
      isStopped = true;
      pause.end();
      await running;
    },
  };
}

async function tryToBegin<T>({ open, begin }: Parts<T>): Promise<Begun<T> | null> {
  const session = open();
  try {
    const value = await beforeDeadline(begin(session), performance.now() + heartbeatLimits.openWithinMs);
    return { session, value };
  } catch {
    void session.end();
    return null;
  }
}

// A pause ends early when `lost` aborts. After end() there are no pauses.
function createPause(ms: number) {
  let isEnded = false;
  let wake = (): void => {};
  return {
    async wait(lost?: AbortSignal): Promise<void> {
      if (isEnded || lost?.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      wake = resolve;
      lost?.addEventListener("abort", wake);
      await promise;
      clearTimeout(timer);
      lost?.removeEventListener("abort", wake);
    },
    end(): void {
      isEnded = true;
      wake();
    },
  };
}
