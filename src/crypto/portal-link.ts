// What opens the portal: the ID of a link, and a keyed hash of it that no table has.
import { timingSafeEqual } from "node:crypto";
import { subKeysOf, type MasterKeys } from "./keys.ts";

const macOf = (keys: MasterKeys, version: string, link: string): Buffer =>
  Buffer.from(subKeysOf(keys, version).portal(link, "binary"), "latin1");

/** Takes a link's ID, lnk_…. */
export const signPortalLink = (keys: MasterKeys, link: string): string =>
  `${link}.${macOf(keys, keys.current, link).toString("base64url")}`;

/** Returns the ID of a link that any of the keys has signed; else null. */
export function readPortalLink(keys: MasterKeys, signed: string): string | null {
  const [, link, mac] = /^(lnk_\w{26})\.([\w-]{43})$/.exec(signed) ?? [];
  if (link === undefined) return null;
  const given = Buffer.from(mac!, "base64url");
  const isOurs = [...keys.versions.keys()].some((version) => timingSafeEqual(macOf(keys, version, link), given));
  return isOurs ? link : null;
}
