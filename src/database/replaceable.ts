// Connections that can hang: for example, a call of the driver may never end if the server goes away during a connect.
// A caller that notices this replaces them.

export type Replaceable<T> = {
  current(): T;
  /** Gives up `used` and opens a replacement, unless another caller that hung on it has already done so. */
  replace(used: T): void;
};

/** `abandoned` aborts when the opened connections are given up, so that callers stop waiting for them. */
export function createReplaceable<T>(open: (abandoned: AbortSignal) => T, close: (old: T) => unknown): Replaceable<T> {
  let abandoned = new AbortController();
  let current = open(abandoned.signal);

  return {
    current: () => current,
    replace(used) {
      if (current !== used) return;
      const old = abandoned;
      abandoned = new AbortController();
      current = open(abandoned.signal);
      old.abort();
      close(used);
    },
  };
}
