// A template whose validity has ended makes no batches.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Client } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { tenants, template } from "../../support/tenants.ts";
import { arrangeBefore, untilPast } from "../../support/race.ts";
import { isReplay } from "../../support/replays.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
const past = { valid_to: "2020-01-02T00:00:00Z" };
tenantA.templates.push(template("tpl_past", "pty_a", past));
tenantB.templates.push(template("tpl_past", "pty_maker", past));

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, tenantB] });
});

const create = (by: Client, body: object) =>
  by.post("/v1/batches", { request_id: newRequestId(), template: "tpl_past", total_count: 1, ...body });
// A template of ten_a with this end.
const provision = (id: string, valid_to: string) =>
  service.apply({ tenants: [{ ...tenantA, templates: [template(id, "pty_a", { valid_to })], credentials: [] }] });

t.test("A batch of a template that is over is refused in both variants, and the refusal is final", async (t) => {
  for (const accessKey of ["ak_a", "ak_maker"]) {
    const by = service.as(accessKey);
    const before = await readState(service.owner);
    const request_id = newRequestId();
    const refused = await create(by, { request_id });
    t.strictSame(
      [refused.status, refused.json],
      [
        409,
        { code: "TEMPLATE_EXPIRED", message: "The validity of the template has ended.", request_id, details: null },
      ],
    );
    t.strictSame(await readState(service.owner), before, "nothing changes");
    const again = await create(by, { request_id });
    t.ok(isReplay(again));
    t.equal(again.text, refused.text);
    fits(t, await create(by, { request_id, total_count: 2 }), {
      status: 422,
      json: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
    fits(t, await create(by, { distributor: "pty_none" }), {
      status: 404,
      json: { details: { resource: "distributor" } },
    });
  }
});

t.test("An extended template makes batches again; the refusal of an earlier request stays", async (t) => {
  const a = service.as("ak_a");
  await provision("tpl_longer", past.valid_to);
  const body = { request_id: newRequestId(), template: "tpl_longer" };
  const refused = await create(a, body);
  fits(t, refused, { status: 409, json: { code: "TEMPLATE_EXPIRED" } });
  await provision("tpl_longer", "2099-01-01T00:00:00Z");
  t.equal((await create(a, body)).text, refused.text);
  fits(t, await create(a, { template: "tpl_longer" }), { status: 200, json: { batch: { status: "PENDING" } } });
});

t.test(
  "A template ends at its valid_to; a batch that was submitted before stays and is never made twice",
  async (t) => {
    const a = service.as("ak_a");
    const { template, body, made, moment } = await arrangeBefore(service, async (validTo, seconds) => {
      const template = `tpl_${seconds}`;
      await provision(template, validTo);
      const body = { request_id: newRequestId(), template };
      return { template, body, made: await create(a, body) };
    });
    fits(t, made, { status: 200, json: { batch: { template_id: template } } });
    await untilPast(service, moment);
    fits(t, await create(a, { template }), { status: 409, json: { code: "TEMPLATE_EXPIRED" } });
    t.equal((await create(a, body)).text, made.text, "a replay");

    const psql = openSession(service.address, { name: "psql" });
    t.teardown(() => psql.end());
    await psql.run("set session_replication_role = replica");
    await psql.rows("delete from core.request where request_id = $1", [body.request_id]);
    const late = await create(a, body);
    t.notOk(isReplay(late));
    fits(t, late, { status: 200, json: { batch: { external_id: made.json.batch.external_id } } });
  },
);
