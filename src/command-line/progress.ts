// Shows the progress of a command in one line of the terminal. The line goes to standard error, so standard output has
// the same bytes with and without it. If standard error is not a terminal, nothing is written. The line uses no colours
// and no escape sequences: a carriage return begins the line again, and blanks remove it.

export interface Progress {
  /** A text that stays for longer than a second is followed by its seconds. */
  show(text: string): void;
  /** Removes the line, so that something else can be printed. The line reappears by itself. */
  clear(): void;
}

export interface Terminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

const drawEveryMs = 250;

/** Shows the progress of `run` until it ends. A command that ends at once shows none. */
export async function withProgress<T>(
  run: (progress: Progress) => Promise<T>,
  terminal: Terminal = process.stderr,
): Promise<T> {
  if (!terminal.isTTY) return run({ show() {}, clear() {} });
  const line = createLine(terminal);
  const timer = setInterval(line.draw, drawEveryMs).unref();
  try {
    return await run(line);
  } finally {
    clearInterval(timer);
    line.clear();
  }
}

function createLine(terminal: Terminal): Progress & { draw(): void } {
  let [text, since, width] = ["", 0, 0];
  const write = (next: string): void => {
    if (next === "" && width === 0) return;
    terminal.write(`\r${next.padEnd(width)}${next === "" ? "\r" : ""}`);
    width = next.length;
  };
  return {
    show(next) {
      if (next !== text) [text, since] = [next, performance.now()];
    },
    draw() {
      if (text === "") return;
      const seconds = Math.floor((performance.now() - since) / 1_000);
      // A line as wide as the terminal would wrap.
      write(`${text}${seconds > 0 ? ` ${seconds} s` : ""}`.slice(0, (terminal.columns || 80) - 1));
    },
    clear: () => write(""),
  };
}
