import { routes } from "../../src/http/routes/table.ts";

/** The path of an operation, such as create_batch. */
export function pathOf(operation: string): string {
  const route = routes.find((one) => one.operation === operation);
  if (route === undefined) throw new Error(`no operation ${operation}`);
  return route.path;
}
