// Guards of the gate and its connections, of the metrics of the HTTP side, and of what programs pass on.
import { edit, type Sabotage } from "./sabotage.ts";

const connections = "src/gate/connections.ts";
const tests = ["test/gate/connections.test.ts"];
const metricsTests = ["test/http/metrics.test.ts"];
const startTests = ["test/operations/start.test.ts"];
const ownTransactions = [
  "allocate-batch",
  "create-batch",
  "get-reconciliation",
  "get-webhook",
  "list-reconciliations",
  "pull-events",
  "replay-events",
  "test-webhook",
];

export const gateGuards: Sabotage[] = [
  {
    name: "a 503 while the database is read-only after a failover",
    edits: [edit(connections, "|55P03|25006)", "|55P03)")],
    tests,
  },
  {
    name: "a 503 after a deadlock or a serialization failure",
    edits: [edit(connections, "(08|40|53|57P|57014|", "(08|53|57P|57014|")],
    tests,
  },
  {
    name: "a group is not repeated call by call on a server that is overloaded or read-only",
    edits: [edit(connections, "/^(08|53|57P|25006)/", "/^(08|57P)/")],
    tests,
  },
  {
    name: "pages of downloads leave the quick lane to calls",
    edits: [edit("src/gate/gate.ts", '{ lane: "bulk", tenantId', '{ lane: "quick", tenantId')],
    tests,
  },
  {
    name: "a tenant's share of the downloads",
    edits: [edit("src/gate/gate.ts", '{ lane: "bulk", tenantId: file.tenant_id }', '{ lane: "bulk", tenantId: null }')],
    tests,
  },
  ...ownTransactions.map((route) => ({
    name: `${route} shares no transaction with other calls`,
    edits: [edit(`src/http/routes/${route}.ts`, "  hasOwnTransaction: true,\n", "")],
    tests: ["test/http/outcomes.test.ts"],
  })),
  {
    name: "a session of the driver is not ended because of its age",
    edits: [edit("src/database/connect.ts", "    max_lifetime: null,\n", "")],
    tests: ["test/database/connect.test.ts"],
  },
  {
    name: "the second attempt with another hash shares no transaction either",
    edits: [edit("src/http/operation.ts", "hashBy(version) }, deadline, route)", "hashBy(version) }, deadline)")],
    tests: ["test/http/outcomes.test.ts"],
  },
  {
    name: "the gate shows how many calls wait for their group",
    edits: [edit("src/gate/gate.ts", "waiting: groups.waiting()", "waiting: 0")],
    tests: ["test/gate/gate.test.ts"],
  },
  {
    name: "the metric of waiting calls is not that of a lane",
    edits: [edit("src/http/metrics.ts", "() => gate().waiting", '() => gate().lanes["quick"]!.waiting')],
    tests: ["test/http/metrics.test.ts"],
  },
  {
    name: "how long a statement runs until its connection counts as dead",
    edits: [edit("src/gate/gate.ts", "defaultHungAfterMs = 4_500", "defaultHungAfterMs = 4_501")],
    tests,
  },
  {
    name: "a refusal for too many open requests counts as one",
    edits: [edit("src/http/app.ts", 'refused("open_requests")', 'refused("connections")')],
    tests: metricsTests,
  },
  {
    name: "connections beyond the limit are counted",
    edits: [edit("src/serve.ts", '    onDropped: () => observer?.refused("connections"),\n', "")],
    tests: metricsTests,
  },
  {
    name: "the metric of busy connections",
    edits: [edit("src/http/metrics.ts", "({ busy }) => busy", "({ waiting }) => waiting")],
    tests: metricsTests,
  },
  {
    name: "serve obeys DOCS",
    edits: [edit("src/serve.ts", " hasDocs: config.docs,", "")],
    tests: startTests,
  },
  {
    name: "start obeys DOCS",
    edits: [edit("src/start.ts", " hasDocs: config.docs,", "")],
    tests: startTests,
  },
  {
    name: "start has the metrics of serve",
    edits: [edit("src/start.ts", "listening, log, metrics }", "listening, log }")],
    tests: startTests,
  },
  {
    name: "start has the metrics of work",
    edits: [edit("src/start.ts", "config, log, metrics }", "config, log }")],
    tests: startTests,
  },
];
