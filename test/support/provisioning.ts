// The tenants of most tests: one of each variant, and an unrelated tenant of Variant A.
import { credential, merchant, party, secretOf, template } from "./tenant-document.ts";

export { secretOf };

const berlin = { time_zone: "Europe/Berlin" };
const fiveOff = { name: "5.00 off" };

export const tenants = [
  {
    id: "ten_a",
    name: "A",
    variant: "A",
    parties: [party("pty_a", berlin)],
    merchants: [merchant("mch_a", "pty_a"), merchant("mch_a2", "pty_a")],
    templates: [
      template("tpl_fixed", "pty_a", fiveOff),
      template("tpl_percent", "pty_a", { name: "10 percent", discount: { type: "percent", percent: 10 } }),
      template("tpl_scoped", "pty_a", { name: "mch_a2 only", merchants: ["mch_a2"] }),
    ],
    credentials: [credential("ak_a"), credential("ak_a_second")],
  },
  {
    id: "ten_a2",
    name: "A, a stranger",
    variant: "A",
    parties: [party("pty_a2", berlin)],
    merchants: [merchant("mch_a2s", "pty_a2")],
    templates: [template("tpl_a2s", "pty_a2", fiveOff)],
    credentials: [credential("ak_a_stranger")],
  },
  {
    id: "ten_b",
    name: "B",
    variant: "B",
    parties: ["pty_maker", "pty_dist", "pty_shop", "pty_pos", "pty_other"].map((id) => party(id, berlin)),
    merchants: [
      merchant("mch_b", "pty_shop", {
        delegates: ["pty_pos"],
        stores: [{ external_id: "S1", terminals: ["T1"] }, { external_id: "S2" }],
      }),
      merchant("mch_b2", "pty_other"),
    ],
    templates: [template("tpl_b", "pty_maker", { ...fiveOff, distributor: "pty_dist" })],
    credentials: [
      credential("ak_maker", "pty_maker"),
      credential("ak_dist", "pty_dist"),
      credential("ak_shop", "pty_shop"),
      credential("ak_pos", "pty_pos"),
      credential("ak_other", "pty_other"),
    ],
  },
];

export const document = { tenants };
