// Accepts only strict RFC 4180: every line ends with CRLF, quotes surround a field and are doubled inside it, and every
// field that needs quotes has them.
export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  const pattern = /"(?:[^"]|"")*"|[^",\r\n]*/y;
  for (let at = 0; at < text.length;) {
    pattern.lastIndex = at;
    const field = pattern.exec(text)![0];
    record.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    at += field.length;
    if (text[at] === ",") {
      at += 1;
    } else if (text.startsWith("\r\n", at)) {
      at += 2;
      records.push(record);
      record = [];
    } else {
      throw new Error(`expected comma or CRLF at ${at}: ${JSON.stringify(text.slice(at, at + 20))}`);
    }
    if (at === text.length && record.length > 0) throw new Error("the last line has no CRLF");
  }
  return records;
}

// Returns each line by the names of the header.
export function readCsv(text: string): Record<string, string>[] {
  const [header, ...lines] = parseCsv(text);
  return lines.map((line) => {
    if (line.length !== header!.length)
      throw new Error(`a line has ${line.length} fields instead of ${header!.length}`);
    return Object.fromEntries(header!.map((name, index) => [name, line[index]!]));
  });
}
