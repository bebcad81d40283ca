// The TypeScript client: what a call is given, how long it waits, and what ends it.
import { edit, type Sabotage } from "./sabotage.ts";

const aborts = "test/clients/aborts.test.ts";
const connections = "test/clients/connections.test.ts";
const downloads = "test/clients/downloads.test.ts";
const waits = "test/clients/waits.test.ts";
const client = "clients/typescript/src/client.ts";
const retry = "clients/typescript/src/retry.ts";
const transport = "clients/typescript/src/transport.ts";

export const clientCallGuards: Sabotage[] = [
  {
    name: "a refused download is a refusal",
    edits: [edit(transport, "isStreamed && reply.status === 200", "isStreamed")],
    tests: [downloads],
  },
  {
    name: "an IPv6 address in the client's URL",
    edits: [edit(transport, 'hostname.replace(/^\\[|\\]$/g, "")', "hostname")],
    mayThrow: true,
    tests: [connections],
  },
  {
    name: "the chance in the client's waits",
    edits: [edit(retry, "Math.random() * Math.min(longest", "Math.min(longest")],
    tests: [waits],
  },
  {
    name: "the client's waits that double",
    edits: [edit(retry, "100 * 2 ** (next - 1)", "100 * (next - 1)")],
    tests: [waits],
  },
  {
    name: "the longest of the client's waits",
    edits: [edit(retry, "longestBackoffMs = 5_000", "longestBackoffMs = 500")],
    tests: [waits],
  },
  {
    name: "the attempts of the client by default",
    edits: [edit(client, "attempts = 5", "attempts = 3")],
    tests: [waits],
  },
  {
    name: "the longest wait of the client by default",
    edits: [edit(client, "longestWaitMs = 30_000", "longestWaitMs = 31_000")],
    tests: [waits],
  },
  {
    name: "the time-out of the client by default",
    edits: [edit(client, "timeoutMs ?? 10_000", "timeoutMs ?? 1_000")],
    tests: [waits],
  },
  {
    name: "the signal of a list of events",
    edits: [
      edit(client, "methods.pullEvents({ ...from, ...cursor }, more)", "methods.pullEvents({ ...from, ...cursor })"),
    ],
    tests: [aborts],
  },
  {
    name: "the signal of a list of statements",
    edits: [
      edit(
        client,
        "methods.listReconciliations({ ...from, ...cursor }, more)",
        "methods.listReconciliations({ ...from, ...cursor })",
      ),
    ],
    tests: [aborts],
  },
  {
    name: "the signal of a download by its address",
    edits: [edit(client, "target: file.href, isStreamed: true, ...more", "target: file.href, isStreamed: true")],
    tests: [aborts],
  },
  {
    name: "the signal of a download by its date",
    edits: [edit(client, "file, { isStreamed: true, ...more }", "file, { isStreamed: true }")],
    tests: [aborts],
  },
];
