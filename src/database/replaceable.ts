// Connections that can hang: for example, a call of the driver may never end if the server goes away during a connect.
// Whoever notices replaces them.

export type Replaceable<T> = {
  current(): T;
  /** Gives up `used` and opens others, if it is still the current one: several callers may hang on the same. */
  replace(used: T): void;
};

/** `abandoned` aborts when what was opened is given up: whoever waits for it then stops. */
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
