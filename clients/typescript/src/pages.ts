// Reads a list page by page, from a cursor to the first empty page.
export async function* readPages<P extends { next_cursor: string }>(
  first: string | undefined,
  countEntries: (page: P) => number,
  readPage: (from: { cursor?: string }) => Promise<P>,
): AsyncGenerator<P, void> {
  for (let cursor = first; ;) {
    const page = await readPage(cursor === undefined ? {} : { cursor });
    if (countEntries(page) === 0) return;
    yield page;
    cursor = page.next_cursor;
  }
}
