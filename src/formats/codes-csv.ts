// The file of a batch's codes: CSV with a header and a line for each coupon. All lines are of one length, so the size
// of the file is known before it is written.
import { stringify } from "csv-stringify/sync";

export type IssuedCode = { coupon_id: string; code: string };

export const codesHeader = "coupon_id,code\n";
const bytesPerLine = "cpn_".length + 26 + ",".length + 16 + "\n".length;

export const toCodeLines = (codes: readonly IssuedCode[]): string =>
  stringify([...codes], { columns: ["coupon_id", "code"] });

export const countCodesBytes = (lines: number): number => codesHeader.length + lines * bytesPerLine;
