// What must hold before a split closes anyone: which server is which, and that the copy can become a cell of its own.
import { ConfigError } from "../config/config.ts";
import type { Session } from "../database/types.ts";

/** The cell that tenants leave, and its copy: a standby, or what it was promoted to. */
export type Sides = { old: Session; copy: Session };
type Server = {
  cluster: string;
  is_standby: boolean;
  cell: number;
  /** Null: it has no archive. */
  archive: string | null;
  waits_for: string;
};

export async function checkSides({ old, copy }: Sides, to: number): Promise<void> {
  const [one, other] = [await describe(old, "DATABASE_URL"), await describe(copy, "CELL_URL")];
  if (one.cluster !== other.cluster) throw new ConfigError("CELL_URL is no standby of DATABASE_URL");
  if (one.is_standby)
    throw new ConfigError(
      "DATABASE_URL is a standby: it must name the cell that the tenants leave, CELL_URL its standby",
    );
  if (one.cell === to) throw new ConfigError(`DATABASE_URL is cell ${to}: the new cell needs another number`);
  if (!other.is_standby && other.cell !== to)
    throw new ConfigError(`CELL_URL takes writes and is cell ${other.cell}: it must be a standby, or cell ${to}`);
  if (other.is_standby) await checkStandby({ old, copy }, one, other);
}

async function describe(session: Session, url: string): Promise<Server> {
  const isSuperuser = await session.rows("select from pg_roles r where r.rolname = current_user and r.rolsuper");
  if (isSuperuser.length === 0) throw new ConfigError(`${url}: a split takes the login of a superuser`);
  const [server] = await session.rows<Server>(
    `select (select system_identifier::text from pg_control_system()) as cluster,
            pg_is_in_recovery() as is_standby,
            core.read_server_cell()::int as cell,
            case when current_setting('archive_mode') <> 'off'
              then concat_ws(' ', current_setting('archive_library'), current_setting('archive_command'))
            end as archive,
            current_setting('synchronous_standby_names') as waits_for`,
  );
  return server!;
}

// Of a standby that is to become a cell.
async function checkStandby({ old, copy }: Sides, primary: Server, standby: Server): Promise<void> {
  if (standby.waits_for !== "")
    throw new ConfigError(
      "CELL_URL has synchronous_standby_names: promoted, it would wait for standbys of the old cell. Reset it first",
    );
  if (standby.archive !== null && standby.archive === primary.archive)
    throw new ConfigError(
      "CELL_URL has the archive of the old cell: once promoted, it would mix its log into that one, and a restore of " +
        "the old cell would follow it. Give it an archive_command of its own first",
    );
  const [receiver] = await copy.rows<{ conninfo: string }>(
    "select conninfo from pg_stat_wal_receiver where status = 'streaming'",
  );
  if (receiver === undefined) throw new ConfigError("CELL_URL does not receive the log of the old cell by streaming");
  const name =
    /(?:^|\s)application_name=(\S+)/.exec(receiver.conninfo) ?? /application_name=(\S+)/.exec(receiver.conninfo);
  const awaited = await old.rows(
    "select from pg_stat_replication where application_name = $1 and sync_state <> 'async'",
    [name?.[1] ?? ""],
  );
  if (awaited.length > 0)
    throw new ConfigError(
      "CELL_URL is a synchronous standby: promoted, it would let every commit of the old cell wait for it. Take " +
        "it out of synchronous_standby_names of the old cell first",
    );
}
