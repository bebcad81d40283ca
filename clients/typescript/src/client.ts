// One method for each operation of the service. An input has the fields of the operation's path, query and body.
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import { openCodes, openDownload, type CodesDownload, type Download } from "./download.ts";
import { operations } from "./generated/operations.ts";
import type { Downloads as DownloadsA, Operations as OperationsA } from "./generated/variant-a.ts";
import type { Downloads as DownloadsB, Operations as OperationsB } from "./generated/variant-b.ts";
import { readPages } from "./pages.ts";
import { longestTimerMs } from "./retry.ts";
import { createSender, type CallOptions, type Sender, type SenderOptions } from "./sender.ts";
import type { Credential } from "./signature.ts";

type Operations = { A: OperationsA; B: OperationsB };
type Downloads = { A: DownloadsA; B: DownloadsB };

/** The form of the interface that your tenant has. The operator tells you. */
export type Variant = keyof Operations;
export type OperationName<V extends Variant = Variant> = keyof Operations[V];
export type Input<O extends OperationName<V>, V extends Variant = Variant> = Field<Operations[V][O], "input">;
export type Answer<O extends OperationName<V>, V extends Variant = Variant> = Field<Operations[V][O], "answer">;

type Field<O, F extends string> = O extends Record<F, infer T> ? T : never;
type Method<I, R> = {} extends I
  ? (input?: I, options?: CallOptions) => Promise<R>
  : (input: I, options?: CallOptions) => Promise<R>;

export type ClientOptions = Credential &
  Partial<SenderOptions> & {
    /** Such as `https://coupons.example.com`, without a path. */
    url: string;
    /** Keeps connections open, and knows your own certificates: `new https.Agent({ keepAlive: true, ca })`. */
    agent?: Agent;
  };

/** A file of the list of statements, or its address. */
export type StatementFile<V extends Variant = Variant> =
  { href: string; sha256?: string } | Downloads[V]["getReconciliation"]["input"];

export type Client<V extends Variant = Variant> = {
  [O in keyof Operations[V]]: Method<Field<Operations[V][O], "input">, Field<Operations[V][O], "answer">>;
} & {
  /** Downloads a file of a statement. */
  getReconciliation(file: StatementFile<V>, options?: CallOptions): Promise<Download>;
  /** Downloads the codes of a batch, encrypted to your public key: `age -d` reads the file. */
  exportCodes(input: Downloads[V]["exportCodes"]["input"], options?: CallOptions): Promise<CodesDownload>;
  /** The pages of your feed, from a cursor to its end. Store `next_cursor` together with the events of its page. */
  eventPages(from?: Input<"pullEvents">, options?: CallOptions): AsyncGenerator<Answer<"pullEvents">, void>;
  /** The pages of your statements, oldest first, from a date to the newest one. */
  reconciliationPages(
    from?: Input<"listReconciliations">,
    options?: CallOptions,
  ): AsyncGenerator<Answer<"listReconciliations">, void>;
  /** The pages of a merchant's redemptions and reversals, from a cursor to the end, in the order of their changes. */
  redemptionPages(
    from: Input<"listRedemptions">,
    options?: CallOptions,
  ): AsyncGenerator<Answer<"listRedemptions">, void>;
  /** The pages of your batches, newest first. */
  batchPages(from?: Input<"listBatches">, options?: CallOptions): AsyncGenerator<Answer<"listBatches">, void>;
  /** Closes the connections, unless you brought an agent. Call it when no call is running. */
  close(): void;
};

/** `createClient<"A">` and `createClient<"B">` have the types of that variant. Both act alike. */
export function createClient<V extends Variant = Variant>(options: ClientOptions): Client<V> {
  const { url, accessKey, secret, agent, attempts = 5, longestWaitMs = 30_000, onReply } = options;
  const timeoutMs = Math.min(options.timeoutMs ?? 10_000, longestTimerMs);
  const { protocol, origin, href } = new URL(url);
  if (!["http:", "https:"].includes(protocol) || href !== `${origin}/`)
    throw new TypeError("the URL must be http://HOST or https://HOST, with a port if need be, and without a path");
  const ownAgent = agent === undefined ? new (protocol === "https:" ? TlsAgent : Agent)({ keepAlive: true }) : null;
  const send = createSender({
    endpoint: { url: origin, accessKey, secret, agent: agent ?? ownAgent! },
    options: { timeoutMs, attempts, longestWaitMs, onReply },
  });
  const methods = Object.fromEntries(
    Object.keys(operations).map((name) => [
      name,
      async (input: object = {}, more: CallOptions = {}) => (await callOperation(send, name, input, more)).answer,
    ]),
  ) as unknown as Client;
  const client: Partial<Client> = {
    ...methods,
    async getReconciliation(file, more = {}) {
      const { stream } =
        "href" in file
          ? await send({ operation: "getReconciliation", method: "GET", target: file.href, isStreamed: true, ...more })
          : await callOperation(send, "getReconciliation", file, { isStreamed: true, ...more });
      return openDownload(stream!, timeoutMs, "href" in file ? file.sha256 : undefined);
    },
    async exportCodes(input, more = {}) {
      const { stream } = await callOperation(send, "exportCodes", input, { isStreamed: true, ...more });
      return openCodes(stream!, timeoutMs);
    },
    eventPages: (from = {}, more) =>
      readPages(
        from.cursor,
        ({ events }) => events.length,
        (cursor) => methods.pullEvents({ ...from, ...cursor }, more),
      ),
    redemptionPages: (from, more) =>
      readPages(
        from.cursor,
        ({ redemptions }) => redemptions.length,
        (cursor) => methods.listRedemptions({ ...from, ...cursor }, more),
      ),
    batchPages: (from = {}, more) =>
      readPages(
        from.cursor,
        ({ batches }) => batches.length,
        (cursor) => methods.listBatches({ ...from, ...cursor }, more),
      ),
    reconciliationPages: (from = {}, more) =>
      readPages(
        from.cursor,
        ({ reconciliations }) => reconciliations.length,
        (cursor) => methods.listReconciliations({ ...from, ...cursor }, more),
      ),
    close: () => ownAgent?.destroy(),
  };
  return client as Client<V>;
}

type Described = { method: string; path: string; query: readonly string[] };

function callOperation(send: Sender, name: string, input: object, more: CallOptions & { isStreamed?: boolean }) {
  const { method, path, query } = (operations as Record<string, Described>)[name]!;
  const fields = input as Record<string, unknown>;
  const filled = path.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(fields[field])));
  const pairs = query.flatMap((field) => {
    const value = fields[field];
    // What a client has stored as its cursor is empty at first.
    const isAbsent = value === undefined || value === null || (field === "cursor" && value === "");
    return isAbsent ? [] : [`${field}=${encodeURIComponent(String(value))}`];
  });
  const target = pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`;
  return send({ operation: name, method, target, ...(method === "POST" && { body: input }), ...more });
}
