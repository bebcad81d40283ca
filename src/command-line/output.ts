// Standard output of the commands. `console.log` ignores errors, and node ignores that a nearly full disk writes only
// part of the data. A secret or a list of codes would be cut off, and the exit code would still report success.
import { fstatSync, writeSync } from "node:fs";

/** Writes all of the text, or rejects: the reader has left, or the disk is full. */
export async function writeOutput(text: string): Promise<void> {
  try {
    if (fstatSync(1).isFile()) writeWhole(Buffer.from(text));
    else await writeToStream(text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "EPIPE" ? "it was closed" : message;
    throw new Error(`standard output is incomplete: ${reason}`, { cause: error });
  }
}

// A full disk writes part of the data, and the next write fails.
function writeWhole(bytes: Buffer): void {
  let written = 0;
  while (written < bytes.length) written += writeSync(1, bytes, written);
}

function writeToStream(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.once("error", reject);
    process.stdout.write(text, (error) => {
      if (error) return reject(error);
      process.stdout.off("error", reject);
      resolve();
    });
  });
}
