// Whom the benches work for: one tenant of Variant A with fifty merchants.

export const tenant = "ten_bench";
export const accessKey = "ak_bench";
export const secret = "secret of the benches, of no worth to anybody";
export const party = "pty_bench";
export const template = "tpl_bench";
export const merchants = Array.from({ length: 50 }, (_, index) => `mch_bench${index}`);

export type Subscriber = { id: string; url: string; secret: string };

export function tenantDocument(subscribers: Subscriber[] = []): object {
  return {
    tenants: [
      {
        id: tenant,
        name: "Bench",
        variant: "A",
        parties: [
          { id: party, name: "Bench" },
          ...subscribers.map(({ id, ...webhook }) => ({ id, name: id, webhook })),
        ],
        merchants: merchants.map((id) => ({ id, name: id, party })),
        templates: [
          {
            id: template,
            name: "5.00 off",
            maker: party,
            currency: "EUR",
            discount: { type: "fixed", amount: 5 },
            valid_from: "2020-01-01T00:00:00Z",
            valid_to: "2099-01-01T00:00:00Z",
          },
        ],
        credentials: [{ access_key: accessKey, secret }],
      },
    ],
  };
}
