// Guards of the gate and its connections, of the metrics of the HTTP side, and of what programs pass on.
import { edit, type Sabotage } from "./sabotage.ts";

const connections = "src/gate/connections.ts";
const tests = ["test/gate/connections.test.ts"];
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
  {
    name: "the load of each lane is its own",
    edits: [edit(connections, "long: pool.lanes.long.load()", "long: pool.lanes.bulk.load()")],
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
];
