// What the scripts of the Postman collections use of crypto-js, which Postman has.
import { createHash, createHmac } from "node:crypto";

const toText = (hex: string) => ({ toString: () => hex });
export const CryptoJS = {
  SHA256: (text: string) => toText(createHash("sha256").update(text).digest("hex")),
  HmacSHA256: (text: string, secret: string) => toText(createHmac("sha256", secret).update(text).digest("hex")),
};
