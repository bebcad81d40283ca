// Where a program gets its master keys: from COUPON_MASTER_KEY, or beside the embedded server from DATA_DIR/master.key.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { parseMasterKeys, type MasterKeys } from "../crypto/keys.ts";
import { asServer, dataFolder, findHome, makeDataDir } from "./data-directory.ts";
import { checkFolder, makeSecretFile, readSecretFile } from "./trust.ts";

type KeyConfig = Pick<Config, "masterKeyText" | "address" | "dataDir">;

/** Never makes a key: the database already has one, and anything made with a new key would be useless. */
export function loadMasterKeys({ masterKeyText, address, dataDir }: KeyConfig): MasterKeys {
  if (masterKeyText !== null) return parseMasterKeys(masterKeyText);
  if (address !== null)
    throw new ConfigError(
      "COUPON_MASTER_KEY is required with DATABASE_URL: 32 random bytes in base64 (openssl rand -base64 32)",
    );
  const file = keyFile(dataDir);
  checkFolder(dataDir);
  const text = readSecretFile(file)?.trim();
  if (text === undefined)
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
  return home !== null && asServer(home, () => existsSync(path.join(dataFolder(home), "PG_VERSION")));
}

function makeKeyFile(dataDir: string): void {
  makeDataDir(dataDir);
  makeSecretFile(keyFile(dataDir), `${randomBytes(32).toString("base64")}\n`);
}
