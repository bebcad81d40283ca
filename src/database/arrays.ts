// How arrays travel. The driver would ask the server for the array types at each connect; these are the ones we use.

/**
 * By type OID: int2[] and int4[] as numbers; int8[], numeric[], text[], varchar[], name[] and uuid[] as strings;
 * bytea[] as buffers, which are only read.
 */
export const arrayTypes = {
  integers: {
    to: 1007,
    from: [1005, 1007],
    parse: (text: string) => parseArray(text).map((item) => item && Number(item)),
    serialize: String,
  },
  bytes: {
    to: 1001,
    from: [1001],
    parse: (text: string) => parseArray(text).map((item) => item && Buffer.from(item.slice(2), "hex")),
    serialize: String,
  },
  texts: { to: 1009, from: [1016, 1231, 1009, 1015, 1003, 2951], parse: parseArray, serialize: String },
};

export const toParams = (params: readonly unknown[]): never[] =>
  params.map((param) => (Array.isArray(param) ? formatArray(param) : param)) as never[];

function formatArray(items: unknown[]): string {
  const format = (item: unknown): string => (item === null ? "null" : `"${String(item).replace(/["\\]/g, "\\$&")}"`);
  return `{${items.map(format).join()}}`;
}

function parseArray(text: string): (string | null)[] {
  return Array.from(text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,]+/gs), ([item, quoted]) =>
    quoted !== undefined ? quoted.replace(/\\(.)/gs, "$1") : item === "NULL" ? null : item,
  );
}
