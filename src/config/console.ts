// The settings of the console.
import { ConfigError, createCountReader, type Read } from "./read.ts";

export interface ConsoleConfig {
  /** null: `start` has no console. */
  port: number | null;
  host: string;
  /** Where browsers reach it, without a slash at its end. null: at its host and port. */
  url: string | null;
  /** Of staff, by name. */
  tokens: ReadonlyMap<string, string>;
  /** The header in which a trusted reverse proxy names its user. null: nobody signs in by a header. */
  userHeader: string | null;
}

/** Where browsers reach the console. */
export const findConsoleUrl = ({ url, host, port }: Pick<ConsoleConfig, "url" | "host" | "port">): string =>
  url ?? `http://${host.includes(":") ? `[${host}]` : host}:${port ?? 8081}`;

export function readConsole(read: Read): ConsoleConfig {
  const count = createCountReader(read);
  return {
    port: read("CONSOLE_PORT") === "off" ? null : count("CONSOLE_PORT", 8081, 0, 65_535, "off"),
    host: read("CONSOLE_HOST") ?? "127.0.0.1",
    url: readUrl(read("CONSOLE_URL")),
    tokens: readTokens(read("CONSOLE_TOKENS") ?? ""),
    userHeader: readHeaderName(read("CONSOLE_USER_HEADER")),
  };
}

// The message repeats no token.
function readTokens(text: string): Map<string, string> {
  const pairs = text.split(/[\s,]+/).filter((part) => part !== "");
  const tokens = new Map(pairs.map((pair) => pair.split(":") as [string, string]));
  const isValid = pairs.every((pair) => /^[\w.@-]{1,100}:[\w-]{32,256}$/.test(pair));
  if (!isValid || tokens.size < pairs.length)
    throw new ConfigError(
      "CONSOLE_TOKENS must be name:token pairs with commas between, each name once: letters, digits and . @ _ - in a " +
        "name; 32 to 256 letters, digits, _ and - in a token (openssl rand -hex 32)",
    );
  return tokens;
}

function readHeaderName(text: string | null): string | null {
  if (text !== null && !/^[\w-]{1,100}$/.test(text))
    throw new ConfigError("CONSOLE_USER_HEADER must be the name of a header, such as X-Forwarded-User");
  return text;
}

function readUrl(text: string | null): string | null {
  if (text === null) return null;
  const url = URL.parse(text.replaceAll("{cell}", "1"));
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search + url.hash !== "")
    throw new ConfigError("CONSOLE_URL must be the address of the console, such as https://console.example.com");
  return text.includes("{cell}") ? text.replace(/\/$/, "") : url.origin;
}

export const defaultConsoleUrl = findConsoleUrl(readConsole(() => null));
