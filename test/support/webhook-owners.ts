// Two tenants of each variant whose parties own webhooks, some with equal IDs, on one receiver.
import type { Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { postOk } from "./client.ts";
import { startReceiver } from "./receiver.ts";
import { newRequestId } from "./request-id.ts";
import { scenario } from "./scenario.ts";
import { voidCoupons } from "./subscribers.ts";
import { credential, party, template } from "./tenants.ts";

type Owner = { tenant: string; party: string; key: string; path: string; secret: string };
type Owners = Awaited<ReturnType<typeof startOwners>>;

const tenants = [
  { id: "ten_b", variant: "B", parties: ["s1", "s2"] },
  { id: "ten_b2", variant: "B", parties: ["s1", "s2"] },
  { id: "ten_a", variant: "A", parties: ["s1", "s2"] },
  { id: "ten_a1", variant: "A", parties: ["s1"] },
];

/** Asks for a test event and returns its ID. */
export const sendTest = async ({ service }: Owners, key: string, event_type = "coupon.redeemed"): Promise<string> => {
  const { event_id } = await postOk(service.as(key), "/v1/webhook/test", { request_id: newRequestId(), event_type });
  return event_id;
};
export const readWebhook = async ({ service }: Owners, key: string) =>
  (await service.as(key).get("/v1/webhook")).json.webhook;

// In Variant A one credential acts for all parties. pty_none has no webhook.
export async function startOwners(t: Test) {
  const receiver = await startReceiver(t);
  // By path: /b/s1, /b/s2, /b2/s1, /b2/s2, /a/s1, /a/s2, /a1/s1.
  const owners = new Map<string, Owner>();
  const document = tenants.map(({ id: tenant, variant, parties }) => {
    const own = parties.map((name): Owner => {
      const short = tenant.slice(4);
      const key = variant === "A" ? `ak_${short}` : `ak_${short}_${name}`;
      return { tenant, party: `pty_${name}`, key, path: `/${short}/${name}`, secret: newWebhookSecret() };
    });
    for (const owner of own) owners.set(owner.path, owner);
    const hook = ({ path, secret }: Owner) => ({ webhook: { url: `${receiver.url}${path}`, secret } });
    return {
      id: tenant,
      name: tenant,
      variant,
      parties: [party("pty_none"), ...own.map((owner) => party(owner.party, hook(owner)))],
      templates: own.map((owner) => template(`tpl_${owner.party.slice(4)}`, owner.party)),
      credentials:
        variant === "A"
          ? [credential(own[0]!.key)]
          : [
              ...own.map(({ key, party }) => credential(key, party)),
              credential(`ak_${tenant.slice(4)}_none`, "pty_none"),
            ],
    };
  });
  const service = await scenario(t, { file: { tenants: document } });
  const { sequence, listDue, deliverDue } = service.steps;

  /** Voids `count` coupons of an owner, and returns the IDs of their events in order. */
  async function happen(path: string, count: number): Promise<string[]> {
    const { tenant, party, key } = owners.get(path)!;
    const { coupons } = await service.makeBatch(service.as(key), `tpl_${party.slice(4)}`, count);
    const ids = coupons.map(({ id }) => id);
    return voidCoupons(service, tenant, ids);
  }

  return { service, receiver, owners, deliverer: { listDue, drain: deliverDue }, sequence, happen };
}
