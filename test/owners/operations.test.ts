// Right owner: each operation works on the caller's own IDs only, and changes only the caller's rows. Unknown IDs and
// other callers' IDs get the same answer, byte for byte. The rows of all tenants are compared before and after.
import t, { type Test } from "tap";
import { newId } from "../../src/formats/id.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { routes } from "../../src/http/routes/table.ts";
import type { Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { merchant, party, template } from "../support/tenants.ts";
import { idsOf, operations, routeOf, sendOperation } from "./operations.ts";
import { addTwins, pairs, tellStory } from "./story.ts";
import type { Teller } from "./teller.ts";
import { declare, partyOf, type Owner } from "./tenants.ts";
import { addChanges, findChanges, ownChanges } from "./twin.ts";

let teller: Teller;
/** One side of each tenant. */
let firsts: Owner[];
t.before(async () => {
  teller = await tellStory(t);
  await addTwins(teller);
  firsts = teller.owners.filter(({ side }) => side === 1);
  for (const owner of firsts) {
    const id = farOf(owner);
    const more = {
      parties: [party(`pty_${id}`, { webhook: { url: "http://127.0.0.1:9" } })],
      merchants: [merchant(`mch_${id}`, `pty_${id}`, { stores: [{ external_id: id, terminals: [id] }] })],
      templates: [template(`tpl_${id}`, "pty_m1")],
    };
    await teller.world.apply(declare(owner, more));
  }
});

/** Names what exists only in this tenant. */
const farOf = ({ tenant }: Owner) => `far${tenant.slice(4)}`;
const siblingOf = ({ tenant, side }: Owner) => teller.owners.find((one) => one.tenant === tenant && one.side !== side)!;
const changesOf = (act: () => Promise<unknown>) => findChanges(teller.world.owner, act);
// Callers of Variant B use the same names.
const nameOf = ({ variant, side }: Owner, what: string) => (variant === "A" ? `${side} ${what}` : what);

// In Variant A each credential acts for all parties of its tenant, so that of the other side acts here.
function send(owner: Owner, name: string, what = name, more: object = {}, key?: string): Promise<Reply> {
  const { by, fields } = operations[name]!;
  const caller = key ?? (owner.variant === "A" ? siblingOf(owner) : owner)[by];
  return sendOperation(teller.world.as(caller), name, { ...fields(owner, teller.books), ...more }, what);
}

t.test("Every operation is tried", (t) => {
  const tried = Object.keys(operations).map((name) => routeOf(name).operation);
  t.strictSame(new Set(tried), new Set(routes.map(({ operation }) => operation)));
  t.end();
});

// For each field: well-formed unknown IDs, malformed IDs, IDs of another kind, and near misses.
function unknownIds({ merchant, template, distributorParty, store, terminal }: Owner): Record<string, string[]> {
  const { keys } = teller.world;
  const redemptions = [newId("red"), newId("red").toUpperCase(), newId("rvs"), newId("cpn"), "red_", "red_none"];
  return {
    merchant: ["mch_none", "?", "pty_s1", merchant.toUpperCase(), `${merchant} `, "mch_%"],
    coupon: [makeCode(keys, "1", batchKey(keys, "1", Buffer.alloc(32, 9)), 1)],
    store: ["none", terminal, store.toLowerCase(), `${store} `],
    terminal: ["none", store, terminal.toLowerCase(), "T0"],
    template: ["tpl_none", "?", merchant, `${template}'`, template.toUpperCase()],
    distributor: ["pty_none", "?", merchant, distributorParty.toUpperCase()],
    batch: [newId("bat"), "bat_none", "x", template],
    redemption: [...redemptions, "?", `red_${"8".repeat(26)}`],
    request_id: ["never seen", "none"],
    date: ["2020-01-01", "2026-02-30", "x"],
    party: ["pty_none", "pty_q"],
    event_id: [newId("evt"), "evt_none"],
  };
}

// IDs that another caller owns: in Variant B also one of the same tenant.
function otherIds(owner: Owner): Record<string, string[]> {
  const { books, owners } = teller;
  const [strangers, sibling] = [owners.filter(({ tenant }) => tenant !== owner.tenant), siblingOf(owner)];
  // A twin has the same codes, redemptions and events.
  const others = strangers.filter(({ variant }) => variant !== owner.variant);
  const away = owner.variant === "B" ? [sibling] : [];
  const far = firsts.filter(({ tenant }) => tenant !== owner.tenant).map(farOf);
  // One of each other party, whose ID is not also one of the owner's.
  const strange = (view: string, column: string, party: string | null, id: string) => {
    const rows = books.of(view);
    const own = rows.filter((row) => row.tenant === owner.tenant && row[column] === party).map((row) => row[id]);
    const others = rows.filter((row) => !own.includes(row[id]));
    return [...Map.groupBy(others, (row) => `${row.tenant} ${row[column]}`).values()].map(([row]) => row![id]);
  };
  return {
    merchant: [...far.map((id) => `mch_${id}`), ...away.flatMap(({ merchant }) => [merchant, "mch_k"])],
    coupon: others.map(({ coupons }) => coupons.toLock!.code),
    store: [...far, sibling.store],
    terminal: [...far, sibling.terminal],
    template: [...far.map((id) => `tpl_${id}`), ...away.map(({ template }) => template)],
    distributor: far.map((id) => `pty_${id}`),
    batch: [...strangers, ...away].map(({ batches }) => batches.unreleased!),
    redemption: [...others, ...away].map(({ coupons }) => coupons.toReverse!.last.redemption),
    request_id: strange("request", "caller", partyOf(owner.shop), "request_id"),
    date: [],
    party: far.map((id) => `pty_${id}`),
    event_id: strange("event", "party", owner.distributorParty, "event"),
  };
}

// The request_id differs between any two answers.
function bare({ status, headers, text }: Reply): object {
  const { "x-request-id": _, ...others } = headers;
  return { status, headers: others, text: text.replace(/"request_id":"[^"]*"/, "") };
}

for (const name of Object.keys(operations))
  t.test(`${name}: unknown IDs and other callers' IDs get the same 404, and nothing changes`, async (t) => {
    for (const owner of firsts)
      for (const [field, resource] of idsOf(name, owner)) {
        const wrong = [...unknownIds(owner)[field]!, ...otherIds(owner)[field]!];
        const what = `${owner.tenant} ${field}: ${wrong.join(" ")}`;
        const replies: Reply[] = [];
        const act = async () => {
          for (const [nth, id] of wrong.entries())
            replies.push(await send(owner, name, `${name} ${field} ${nth}`, { [field]: id }));
        };
        const recorded = routeOf(name).isWrite ? `request -0 +${wrong.length}` : "";
        t.strictSame(await changesOf(act), ownChanges(owner, recorded), what);
        fits(t, replies[0], { status: 404, json: { code: "NOT_FOUND", details: { resource } } }, what);
        const [first, ...others] = replies.map(bare);
        for (const [nth, other] of others.entries()) t.strictSame(other, first, `${what}, ${nth}`);
      }
  });

t.test("The answer names the first wrong ID; the merchant's scope is checked after all IDs", async (t) => {
  for (const owner of firsts)
    for (const name of ["lock", "redeem", "confirm", "void", "query"]) {
      const coupon = siblingOf(owner).coupons.scoped!.code;
      const ids = idsOf(name, owner);
      for (const [index, [field, resource]] of ids.entries()) {
        const wrong = ids.slice(index).map(([one]) => [one, unknownIds(owner)[one]![0]]);
        const reply = await send(owner, name, `${name} from ${field}`, { coupon, ...Object.fromEntries(wrong) });
        fits(t, reply.json, { details: { resource } }, `${name} ${field}`);
      }
      const refusal = { status: 422, json: { code: "MERCHANT_NOT_IN_SCOPE", details: null } };
      fits(t, await send(owner, name, `${name} out of scope`, { coupon }), refusal, name);
    }
});

// In Variant B the maker operates its batches; the merchant's party and its delegates its coupons; the distributor its
// feed, its statements and its webhook. What is allowed, the story has done.
t.test("Variant B: who may not act for an owner gets a 404, or finds no lock", async (t) => {
  for (const owner of firsts.filter(({ variant }) => variant === "B")) {
    const act = async () => {
      for (const [name, { by }] of Object.entries(operations))
        for (const key of ["m1", "d1", "s1", "p", "m2"].map((role) => owner.shop.replace(/s1$/, role))) {
          const isDelegate = by === "shop" && key === owner.delegate;
          const isReader = name === "export_codes" && key === owner.distributor;
          const isAllowed = key === owner[by] || isReader || (isDelegate && !/confirm|cancel|get_request/.test(name));
          // A list, and a portal, is that of its caller.
          if (isAllowed || /^(pull_events|list_reconciliations|list_batches|open_portal)$/.test(name)) continue;
          const reply = await send(owner, name, `${name} by another`, {}, key);
          const findsNoLock = name === "cancel" || (name === "confirm" && isDelegate);
          const [status, code] = findsNoLock ? [409, "LOCK_NOT_FOUND"] : [404, "NOT_FOUND"];
          fits(t, reply, { status, json: { code } }, `${name} by ${key}: ${reply.text}`);
        }
    };
    // A cancel is noted, so that a lock which comes later is refused.
    const noted = ["lock_cancellation", "request"].map((table) => `${owner.tenant} ${table}`);
    t.strictSame(Object.keys(await changesOf(act)), noted);
  }
});

async function checkWrite(t: Test, name: string, both: Owner[]): Promise<void> {
  const { books } = teller;
  const { answer, changes, again } = operations[name]!;
  const replies: Reply[][] = [];
  const sendAll = (what: string) => async () =>
    replies.push(await Promise.all(both.map((owner) => send(owner, name, nameOf(owner, what)))));
  const recorded = (of: (owner: Owner) => string) =>
    addChanges(both.map((owner) => ownChanges(owner, `${of(owner)}request -0 +1`)));
  const expected = recorded((owner) => `${changes!(owner, books)}, `);
  t.strictSame(await changesOf(sendAll(name)), expected, "only rows of the callers");
  t.strictSame(await changesOf(sendAll(name)), {}, "a replay changes nothing");
  for (const [index, owner] of both.entries()) {
    const [reply, replay] = [replies[0]![index]!, replies[1]![index]!];
    fits(t, reply.json, { ok: true, ...answer!(owner, books) }, reply.text);
    t.strictSame([replay.text, replay.headers["idempotent-replayed"]], [reply.text, "true"], "its own record");
  }
  if (again === undefined) return;
  const refused = recorded(() => "");
  t.strictSame(await changesOf(sendAll(`${name} again`)), refused);
  for (const { json } of replies[2]!) t.equal(json.code, again);
}

for (const name of Object.keys(operations).filter((one) => routeOf(one).isWrite))
  t.test(`${name} changes rows of its caller only`, async (t) => {
    for (const both of pairs(teller.owners)) await checkWrite(t, name, both);
  });

t.test("A cancel before its lock refuses the late lock of its caller only", async (t) => {
  for (const owner of teller.owners) {
    const { merchant, coupons, lateLock, shop, delegate } = owner;
    const late = { coupon: coupons.cancelledEarly!.code, merchant };
    fits(t, await send(owner, "lock", lateLock, late, shop), { status: 409, json: { code: "LOCK_CANCELLED" } }, shop);
    if (delegate !== shop) t.equal((await send(owner, "lock", lateLock, late, delegate)).status, 200, "another caller");
  }
});

// Twins first: they have the larger numbers, so the rows of the other tenant are read before theirs.
t.test("A lock ends an expired lock of its own tenant only", async (t) => {
  await teller.world.owner.rows("update core.redemption set lock_expires_at = started_at where status = 'LOCKED'");
  for (const owner of teller.owners.toReversed()) {
    const act = () => send(owner, "lock", nameOf(owner, "lock anew"), { coupon: owner.coupons.locked!.code });
    t.strictSame(await changesOf(act), ownChanges(owner, "redemption -1 +2, request -0 +1"));
  }
});

t.test("After the records of requests are pruned, a repeated create_batch finds the batch of its caller", async (t) => {
  const { owner: database } = teller.world;
  const made = "select batch from report.batch where tenant = $1 and maker = $2 and total_count = 6";
  await database.rows("delete from core.request");
  for (const owner of teller.owners) {
    const [own] = await database.rows<{ batch: string }>(made, [owner.tenant, owner.makerParty]);
    const { json } = await send(owner, "create_batch", nameOf(owner, "create_batch"));
    t.equal(json.batch.external_id, own!.batch);
  }
});
