// Where a program gets its master keys: from COUPON_MASTER_KEY, or beside the embedded server from DATA_DIR/master.key.
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { parseMasterKeys, type MasterKeys } from "../crypto/keys.ts";
import { dataFolder, findHome, makeDataDir } from "./data-directory.ts";

type KeyConfig = Pick<Config, "masterKeyText" | "address" | "dataDir">;

/** Never makes a key: the database already has one, and anything made with a new key would be useless. */
export function loadMasterKeys({ masterKeyText, address, dataDir }: KeyConfig): MasterKeys {
  if (masterKeyText !== null) return parseMasterKeys(masterKeyText);
  if (address !== null)
    throw new ConfigError(
      "COUPON_MASTER_KEY is required with DATABASE_URL: 32 random bytes in base64 (openssl rand -base64 32)",
    );
  const file = keyFile(dataDir);
  const text = readKeyFile(file);
  if (text === null)
    throw new ConfigError(
      `${file} is missing, and the database in ${dataDir} needs its key: ` +
        "restore the file from your backup, or set COUPON_MASTER_KEY to that key",
    );
  return parseMasterKeys(text, file);
}

/** For `npm start`. Makes the key file at the first start in DATA_DIR, before there is a database. */
export function loadOrMakeMasterKeys(config: KeyConfig): MasterKeys {
  const { masterKeyText, address, dataDir } = config;
  if (masterKeyText === null && address === null && !hasDatabase(dataDir)) makeKeyFile(dataDir);
  return loadMasterKeys(config);
}

const keyFile = (dataDir: string): string => path.join(dataDir, "master.key");

function hasDatabase(dataDir: string): boolean {
  const home = findHome(dataDir);
  return home !== null && existsSync(path.join(dataFolder(home), "PG_VERSION"));
}

function readKeyFile(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

// Writes a temporary file and links it into place. If several processes start at once, one wins and the others read its
// key. A crash never leaves half a key, and an existing file stays as it is.
function makeKeyFile(dataDir: string): void {
  makeDataDir(dataDir);
  const draft = `${keyFile(dataDir)}.${randomBytes(6).toString("hex")}`;
  try {
    // equivalent mutant (literal true): only a power failure shows it
    writeFileSync(draft, `${randomBytes(32).toString("base64")}\n`, { flag: "wx", mode: 0o600, flush: true });
    linkSync(draft, keyFile(dataDir));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  // A power failure must not leave a database without its key.
  const folder = openSync(dataDir, "r");
  // equivalent mutant (statement): only a power failure shows it
  fsyncSync(folder);
  closeSync(folder);
}
