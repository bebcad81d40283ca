// The tenant of the benchmarks: Variant A, with fifty merchants.
import { credential, merchant, party as makeParty, secretOf, template as makeTemplate } from "../support/tenants.ts";

export const accessKey = "ak_bench";
export const secret = secretOf(accessKey);
export const party = "pty_bench";
export const template = "tpl_bench";
export const merchants = Array.from({ length: 50 }, (_, index) => `mch_bench${index}`);

export type Subscriber = { id: string; url: string; secret: string };

export function tenantDocument(subscribers: Subscriber[] = []): object {
  return {
    tenants: [
      {
        id: "ten_bench",
        name: "Bench",
        variant: "A",
        parties: [makeParty(party), ...subscribers.map(({ id, ...webhook }) => makeParty(id, { webhook }))],
        merchants: merchants.map((id) => merchant(id, party)),
        templates: [makeTemplate(template, party)],
        credentials: [credential(accessKey)],
      },
    ],
  };
}
