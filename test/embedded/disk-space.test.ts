// The embedded server is started again as soon as its disk has space.
import { rmSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { hasSpace, waitForSpace } from "../../src/embedded/disk-space.ts";
import { canMount, fillDisk, mountSmallDisk, unmount } from "../support/small-disk.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";

const skip = canMount() ? false : "only root may mount a small disk";
const longMs = 20_000;

t.test("a pause on a full disk ends when there is space, or when nobody waits any more", { skip }, async (t) => {
  const folder = makeTemporaryFolder("coupon-space-", (abandoned) => unmount(path.join(abandoned, "disk")));
  const disk = mountSmallDisk(path.join(folder, "disk"), 64 * 2 ** 20)!;
  t.teardown(() => {
    unmount(disk);
    removeFolder(folder);
  });
  const filler = path.join(disk, "filler");
  t.equal(hasSpace(disk), true);
  fillDisk(filler);
  t.equal(hasSpace(disk), false);
  let looks = 0;
  await waitForSpace(disk, longMs, () => {
    looks += 1;
    if (looks === 3) rmSync(filler);
    return false;
  });
  t.equal(looks, 3);
  t.equal(hasSpace(disk), true);
  await waitForSpace(disk, longMs, () => true);
});

t.test("a pause on a disk with space has its length", async (t) => {
  let looks = 0;
  await waitForSpace(t.testdir({}), 50, () => {
    looks += 1;
    return looks === 10;
  });
  t.ok(looks <= 1, "the next look comes after its end");
});

t.test("a folder that is gone is no full disk", async (t) => {
  t.equal(hasSpace(path.join(t.testdir({}), "gone")), true);
});
