// One coupon's life as requests of the Postman collection: docs/examples/README.md tells the story.
import type { Json } from "./client-types.ts";

/** `before` and `test` are scripts of Postman: before the request, and after its answer. */
export type Step = {
  operation: string;
  does: string;
  /** The variable with the access key. */
  caller: "maker" | "till" | "distributor";
  body?: Json;
  query?: Record<string, string>;
  before?: string;
  test: string;
};

const show = (operation: string, value: string) =>
  `const answer = pm.response.json();\nconsole.log("${operation} " + ${value});`;
// A run of the collection sends the request again after half a second.
const again = "{\n  pm.execution.setNextRequest(pm.info.requestId);\n  setTimeout(() => {}, 500);\n}";

function act(caller: Step["caller"], operation: string, does: string, body: Json, value: string): Step {
  return { operation, does, caller, body: { request_id: "{{request_id}}", ...body }, test: show(operation, value) };
}

const place = { coupon: "{{code}}", merchant: "{{merchant}}" };
const order = (order_id: string, order_amount: number): Json => ({
  ...place,
  store: "S1",
  terminal: "T1",
  order_id,
  order_amount,
});
const batch = { batch: "{{batch}}" };
const question = { ...place, order_amount: 45.5 };
const lock = { lock_request_id: "{{lock_request_id}}", coupon: "{{code}}" };
const returned = { redemption: "{{redemption}}", reason: "goods returned" };
const batchStatus = "answer.batch.status";
const discount = "answer.discount_amount.toFixed(2)";
const quoted = "answer.quote.discount_amount.toFixed(2)";

const ordering: Step[] = [
  act("maker", "create_batch", "the maker orders a coupon", { template: "{{template}}", total_count: 1 }, batchStatus),
  {
    operation: "get_batch",
    does: "send it again until the status is COMPLETED",
    caller: "maker",
    test: `if (pm.response.json().batch.status === "PENDING") ${again}
else console.log("get_batch " + pm.response.json().batch.status);`,
  },
  act("maker", "allocate_batch", "the maker releases it to the distributor", batch, batchStatus),
  {
    operation: "list_batches",
    does: "it is the newest of its batches",
    caller: "maker",
    query: { template: "{{template}}", limit: "1" },
    test: show("list_batches", "answer.batches[0].status"),
  },
];

const redeeming: Step[] = [
  act("maker", "suspend_batch", "a list of codes is missing", batch, batchStatus),
  { ...act("till", "query", "the till sees it", {}, "answer.quote.code"), body: question },
  act("maker", "resume_batch", "the list is found", batch, batchStatus),
  {
    ...act("till", "query", "the till shows the discount while goods are scanned", {}, quoted),
    body: question,
  },
  act("till", "lock", "the till locks the coupon and takes the discount off the order", order("4711", 45.5), discount),
  act("till", "confirm", "the customer has paid", { ...lock, merchant: "{{merchant}}" }, "answer.status"),
  {
    operation: "list_redemptions",
    does: "the returns desk knows the number of the order; the newest redemption comes first",
    caller: "till",
    query: { merchant: "{{merchant}}", order_id: "4711" },
    test: `const [found] = pm.response.json().redemptions;
pm.collectionVariables.set("redemption", found.redemption);
console.log("list_redemptions " + found.status);`,
  },
  act("till", "reverse", "the template says that the coupon can be used again", returned, "answer.status"),
  {
    operation: "get_redemption",
    does: "the returns desk looks at it",
    caller: "till",
    test: show("get_redemption", "answer.redemption.status"),
  },
  act("till", "redeem", "the next order redeems it in one step", order("4712", 24.9), discount),
  act("till", "reverse", "it is returned too", returned, "answer.status"),
  act("till", "lock", "a third order", order("4713", 60), discount),
  act("till", "cancel", "its customer leaves without paying, and the till gives up its lock", lock, "answer.status"),
  act("till", "void", "the till voids the unused coupon", { ...place, reason: "printed twice" }, "answer.status"),
  { ...act("till", "query", "the till looks at it", {}, "answer.coupon.status"), body: place },
  {
    operation: "pull_events",
    does: "the distributor pulls the events; send it again until all are there",
    caller: "distributor",
    query: { limit: "1000" },
    test: `const coupon = pm.variables.get("coupon_id");
const events = pm.response.json().events.filter((event) => event.coupon_id === coupon);
const types = events.map((event) => event.event_type);
if (!types.includes("coupon.voided")) ${again}
else console.log(["pull_events"].concat(types).join(" "));`,
  },
  {
    operation: "list_reconciliations",
    does: "the first statement comes after midnight",
    caller: "distributor",
    query: { limit: "1000" },
    test: `const days = pm.response.json().reconciliations;
console.log("list_reconciliations " + (days.length > 0 ? days[days.length - 1].business_date : "none"));`,
  },
  {
    operation: "get_reconciliation",
    does: "the distributor downloads the newest statement, once there is one",
    caller: "distributor",
    before: `if (!pm.variables.get("date")) pm.execution.skipRequest();`,
    test: `const lines = pm.response.text().trim().split("\\r\\n").slice(1);
for (const line of lines) console.log("get_reconciliation " + line);`,
  },
  {
    operation: "get_webhook",
    does: "how the deliveries to its webhook go",
    caller: "distributor",
    test: show("get_webhook", "answer.webhook.status"),
  },
];

export const life = [
  {
    name: "One coupon's life: order it",
    description: "Then a command prints the code of the coupon: see docs/examples/README.md.",
    steps: ordering,
  },
  { name: "One coupon's life: redeem it", description: "It needs the variable code.", steps: redeeming },
];
