// The cells of the gate. Without a router there is one, which is the database. Behind a router, each cell gets its own
// when the gate first learns of a tenant there: from gate.find_credential of that cell.
import { openCell, type Cell, type CellLoad, type CellParts } from "./cell-calls.ts";

export type Cells = {
  /** The database, or the router itself: for what concerns no tenant, or one whose cell is not known. */
  base: Cell;
  /** Where a tenant was found last. */
  ofTenant(tenantId: number): Cell;
  /** The number of the cell where an access key was found last. undefined: nowhere. */
  ofKey(accessKey: string): number | undefined;
  ofNumber(cell: number): Cell;
  /** The number of the cell where a tenant was found last. 1 without a router. */
  numberOf(tenantId: number): number;
  /** Notes where a credential was found. */
  note(accessKey: string, tenantId: number, cell: number): void;
  load(): CellLoad[];
  reconnect(): void;
  end(): Promise<void>;
};

const mostKeys = 10_000;

export function openCells(gate: Omit<CellParts, "cell" | "onHome">): Cells {
  const onHome = (tenantId: number, number: number) => void homes.set(tenantId, number);
  const parts = { ...gate, onHome };
  const base = openCell({ ...parts, cell: null });
  const cells = new Map<number, Cell>();
  // There is one entry for each tenant, so none is ever removed.
  const homes = new Map<number, number>();
  const ofKeys = new Map<string, number>();
  const all = () => [base, ...cells.values()];

  function ofNumber(number: number): Cell {
    const cell = cells.get(number) ?? openCell({ ...parts, cell: number });
    cells.set(number, cell);
    return cell;
  }

  return {
    base,
    ofTenant(tenantId) {
      const home = homes.get(tenantId);
      return home === undefined ? base : ofNumber(home);
    },
    numberOf: (tenantId) => homes.get(tenantId) ?? 1,
    ofKey: (accessKey) => ofKeys.get(accessKey),
    ofNumber,
    note(accessKey, tenantId, number) {
      homes.set(tenantId, number);
      // Drops the oldest entry: a map keeps its entries in the order of insertion.
      if (ofKeys.size >= mostKeys) ofKeys.delete(ofKeys.keys().next().value!);
      ofKeys.set(accessKey, number);
    },
    load: () => all().map((cell) => cell.load()),
    reconnect: () => all().forEach((cell) => cell.reconnect()),
    end: async () => void (await Promise.all(all().map((cell) => cell.end()))),
  };
}
