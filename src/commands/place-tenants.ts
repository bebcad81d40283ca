// Where `coupon apply` acts if it is given a router: a file is for the tenants of one cell. Refuses, before anything is
// written, what lives in another cell: only here can a tenant or an access key be kept from existing in two.
import type { Issue } from "../http/problem.ts";
import { askCell, openCellSession, refuseUnasked, type Asked, type CellAddress, type Route } from "./find-cell.ts";
import { ApplyError, type Provisioning } from "./provisioning.ts";

/** An advisory lock in each cell: two files that declare the same new tenant are placed one after the other. */
const lockKey = "7163384699735304";

/** newCell: the cell for new tenants. */
export const placeTenants =
  (file: Provisioning, newCell: number | undefined): Route =>
  async (cells, act) => {
    const ids = file.tenants.flatMap(({ id, credentials }) => [id, ...credentials.map((each) => each.access_key)]);
    const sessions = cells.map((cell) => ({ cell, session: openCellSession(cell) }));
    try {
      const asked: Asked[] = [];
      // In the order of their numbers, so that two commands cannot block each other.
      for (const { cell, session } of sessions) asked.push(await askCell(cell, session, ids, lockKey));
      for (const id of ids) if (!asked.some(({ has }) => has.has(id))) refuseUnasked(asked, id);
      return await act(choosePlace(file, asked, newCell).address);
    } finally {
      await Promise.all(sessions.map(({ session }) => session.end()));
    }
  };

function choosePlace({ tenants }: Provisioning, cells: Asked[], newCell: number | undefined): CellAddress {
  const homeOf = (id: string) => cells.find(({ has }) => has.has(id));
  const homes = tenants.map(({ id }) => homeOf(id));
  const known = homes.find((home) => home !== undefined);
  const isAsWanted = newCell === undefined || !homes.includes(undefined);
  const place = known !== undefined && isAsWanted ? known : choosePlaceOfNew(cells, newCell);
  const issues: Issue[] = [];
  const check = (path: string, home: CellAddress | undefined) => {
    if (home !== undefined && home.cell !== place.cell)
      issues.push({ path, message: `lives in cell ${home.cell}, and this file is applied to cell ${place.cell}` });
  };
  for (const [index, { credentials }] of tenants.entries()) {
    check(`tenants.${index}.id`, homes[index]);
    for (const [number, { access_key }] of credentials.entries())
      check(`tenants.${index}.credentials.${number}.access_key`, homeOf(access_key));
  }
  if (issues.length > 0) throw new ApplyError(issues);
  return place;
}

function choosePlaceOfNew(cells: Asked[], newCell: number | undefined): CellAddress {
  const numbers = `the cells are ${cells.map(({ cell }) => cell).join(", ")}`;
  if (newCell === undefined && cells.length !== 1)
    throw new Error(`the tenants of the file are new: say where they are to live, with --cell N; ${numbers}`);
  const place = newCell === undefined ? cells[0] : cells.find(({ cell }) => cell === newCell);
  if (place === undefined) throw new Error(`there is no cell ${newCell}: ${numbers}`);
  return place;
}
