// Reads a list page by page, from a cursor to the first empty page, or to a page that has no next one.
export async function* readPages<P extends { next_cursor: string | null }>(
  first: string | undefined,
  countEntries: (page: P) => number,
  readPage: (from: { cursor?: string }) => Promise<P>,
): AsyncGenerator<P, void> {
  for (let cursor: string | null | undefined = first; cursor !== null;) {
    const page: P = await readPage(cursor === undefined ? {} : { cursor });
    if (countEntries(page) === 0) return;
    yield page;
    cursor = page.next_cursor;
  }
}
