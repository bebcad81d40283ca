// The names of the fields that an operation has, from its schema; all but the coupon.
import type { Variant } from "../../src/gate/gate.ts";
import { routes } from "../../src/http/routes/table.ts";

export function fieldsOf(path: string, variant: Variant): string[] {
  const schema = routes.find((route) => route.path === path)!.schema(variant) as unknown as { shape: object };
  return Object.keys(schema.shape).filter((name) => name !== "coupon");
}
