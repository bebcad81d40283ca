// What the readers of settings share.

/** The value of a setting; null if it is absent or empty. */
export type Read = (name: string) => string | null;

/** A setting is wrong. The message is one line for the operator and never contains a secret. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export function createCountReader(read: Read) {
  /** `word`: what the setting may be in place of a number. The caller reads it. */
  return (name: string, defaultCount: number, min: number, max: number, word?: string): number => {
    const text = read(name) ?? String(defaultCount);
    const count = Number(text);
    if (!/^\d{1,7}$/.test(text) || count < min || count > max) {
      const other = word === undefined ? "" : `, or ${word}`;
      throw new ConfigError(`${name} must be a number from ${min} to ${max}${other}, not "${text}"`);
    }
    return count;
  };
}
