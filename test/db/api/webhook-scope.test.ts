// Each operation on webhooks works on the caller's own webhook only. Seven webhooks exist, in two tenants of each
// variant; some tenants and parties have equal names.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { newRequestId } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { startOwners, type Owners } from "../../support/webhook-owners.ts";

let fixture: Owners;
// An event of each owner, by path.
const events = new Map<string, string>();
t.before(async () => {
  fixture = await startOwners(t);
  for (const path of fixture.owners.keys()) events.set(path, (await fixture.happen(path, 1))[0]!);
  await fixture.deliverer.drain();
});

const operations = ["get", "replay", "test"] as const;
type Operation = (typeof operations)[number];

// party: the field of Variant A.
function send(operation: Operation, key: string, event: string, party?: string) {
  const by = fixture.service.as(key);
  if (operation === "get") return by.get(party === undefined ? "/v1/webhook" : `/v1/webhook?party=${party}`);
  const body = { request_id: newRequestId(), ...(party !== undefined && { party }) };
  return operation === "replay"
    ? by.post("/v1/webhook/replay", { ...body, event_id: event })
    : by.post("/v1/webhook/test", { ...body, event_type: "coupon.expired" });
}

// Whom a call is for: in Variant A it names the party if the tenant has two webhooks.
const partyOf = (path: string) => (path.startsWith("/a/") ? fixture.owners.get(path)!.party : undefined);

t.test("get_webhook shows the caller's own webhook, and its own attempts", async (t) => {
  for (const [path, { key, party }] of fixture.owners) {
    const { status, json } = await send("get", key, "", partyOf(path));
    t.equal(status, 200, path);
    const { attempts, ...rest } = json.webhook;
    t.strictSame(rest, {
      party_id: party,
      url: `${fixture.receiver.url}${path}`,
      status: "healthy",
      waiting: 0,
      parked: 0,
    });
    t.strictSame(
      attempts.map(({ event_type }: { event_type: string }) => event_type).sort(),
      ["allocation.completed", "batch.generated", "coupon.voided"],
      path,
    );
    const voided = attempts.find(({ event_type }: { event_type: string }) => event_type === "coupon.voided");
    t.equal(voided.event_id, events.get(path), path);
  }
});

t.test("replay_events and test_webhook reach the caller's own receiver only", async (t) => {
  const { deliverer, receiver, owners } = fixture;
  for (const [path, { key }] of owners)
    for (const operation of ["replay", "test"] as const) {
      receiver.received.length = 0;
      const reply = await send(operation, key, events.get(path)!, partyOf(path));
      t.equal(reply.status, 200, `${operation} ${path}: ${reply.text}`);
      await deliverer.drain();
      const sent = operation === "replay" ? events.get(path) : reply.json.event_id;
      t.strictSame(
        receiver.received.map((one) => [one.path, one.id]),
        [[path, sent]],
        `${operation} ${path}`,
      );
    }
});

t.test("no webhook: 404 with resource webhook, and nothing changes", async (t) => {
  const before = await readState(fixture.service.owner);
  for (const operation of operations)
    for (const [key, party] of [
      ["ak_b_none", undefined],
      ["ak_a", "pty_none"],
      ["ak_a1", "pty_none"],
      ["ak_a", "pty_unknown"],
      // A party of another tenant only.
      ["ak_a1", "pty_s2"],
    ] as const)
      fits(
        t,
        await send(operation, key, events.get("/a/s2")!, party),
        { status: 404, json: { code: "NOT_FOUND", details: { resource: "webhook" } } },
        `${operation} ${key} ${party}`,
      );
  t.strictSame(await readState(fixture.service.owner), before);
});

t.test("another owner's event: 404 with resource event, like an unknown one, and nothing changes", async (t) => {
  const before = await readState(fixture.service.owner);
  const unknown = ["evt_none", `evt_${"0".repeat(26)}`];
  for (const [path, { key }] of fixture.owners) {
    const others = [...events].filter(([other]) => other !== path).map(([, event]) => event);
    for (const event of [...others, ...unknown])
      fits(
        t,
        await send("replay", key, event, partyOf(path)),
        { status: 404, json: { code: "NOT_FOUND", details: { resource: "event" } } },
        `${path} ${event}`,
      );
  }
  t.strictSame(await readState(fixture.service.owner), before);
});

t.test("a range has the caller's own events only", async (t) => {
  const { deliverer, receiver, owners, service } = fixture;
  for (const [path, { key }] of owners) {
    receiver.received.length = 0;
    const party = partyOf(path);
    const body = { request_id: newRequestId(), from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" };
    const reply = await service.as(key).post("/v1/webhook/replay", { ...body, ...(party !== undefined && { party }) });
    t.strictSame([reply.status, reply.json], [200, { ok: true, replayed: 3 }], path);
    await deliverer.drain();
    t.strictSame(
      receiver.received.map((one) => `${one.path} ${JSON.parse(one.body).event_type}`).sort(),
      ["allocation.completed", "batch.generated", "coupon.voided"].map((type) => `${path} ${type}`),
    );
    t.ok(receiver.received.some(({ id }) => id === events.get(path)));
  }
});

t.test("Variant A: a tenant with several webhooks names the party; Variant B has no such field", async (t) => {
  const before = await readState(fixture.service.owner);
  for (const operation of operations) {
    fits(
      t,
      await send(operation, "ak_a", events.get("/a/s1")!),
      {
        status: 400,
        json: { details: { issues: [{ path: "party", message: "is required: the tenant has several webhooks" }] } },
      },
      operation,
    );
    fits(
      t,
      await send(operation, "ak_b_s1", events.get("/b/s1")!, "pty_s1"),
      { status: 400, json: { details: { issues: [{ path: "party", message: "unknown field" }] } } },
      operation,
    );
  }
  t.strictSame(await readState(fixture.service.owner), before);
});
