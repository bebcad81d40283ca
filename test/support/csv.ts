// Reads CSV exactly as RFC 4180 writes it, and nothing else: every line ends with CRLF, a quote stands only around a
// field and doubled inside one, and what needs quotes has them.
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
      throw new Error(`neither comma nor CRLF at ${at}: ${JSON.stringify(text.slice(at, at + 20))}`);
    }
    if (at === text.length && record.length > 0) throw new Error("the last line does not end");
  }
  return records;
}

// By the names of the header line.
export function readCsv(text: string): Record<string, string>[] {
  const [header, ...lines] = parseCsv(text);
  return lines.map((line) => {
    if (line.length !== header!.length) throw new Error(`a line of ${line.length} fields`);
    return Object.fromEntries(header!.map((name, index) => [name, line[index]!]));
  });
}
