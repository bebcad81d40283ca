// Charts, drawn from the tables that a page has anyway, and the refresh of pages that ask for it. Pages work without.
// Times are UTC, as in the tables.
const tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
const formatTime = (time, isByDay) => (isByDay ? time.toISOString().slice(5, 10) : time.toISOString().slice(11, 16));
const lineColors = ["#2f6fde", "#d2691e", "#2e8b57", "#8a5cc2", "#c2185b"];

/** The columns of a table. A text between the times and the numbers names a line: each of its values becomes one. */
function readColumns(table) {
  const heads = [...table.querySelectorAll("th")];
  const names = heads.map((cell) => cell.textContent);
  const rows = [...table.querySelectorAll("tbody tr")].map((row) =>
    [...row.cells].map((cell) => cell.querySelector("time")?.dateTime ?? cell.textContent),
  );
  const toTime = (text) => Date.parse(text) / 1000;
  if (heads[1].className === "number")
    return { names, data: names.map((_, at) => rows.map((row) => (at === 0 ? toTime(row[0]) : Number(row[at])))) };
  const [times, lines] = [0, 1].map((at) => [...new Set(rows.map((row) => row[at]))]);
  const values = new Map(rows.map(([time, line, value]) => [`${time} ${line}`, Number(value)]));
  const data = lines.map((line) => times.map((time) => values.get(`${time} ${line}`) ?? null));
  return { names: [names[0], ...lines], data: [times.map(toTime), ...data] };
}

// Sums of days are bars, one series beside the other.
function pathsOf(at, count) {
  const width = 0.8 / count;
  return uPlot.paths.bars({
    disp: {
      x0: { unit: 1, values: (u) => u.data[0].map((time) => time - 86_400 * (0.4 - (at - 1) * width)) },
      size: { unit: 1, values: (u) => u.data[0].map(() => 86_400 * width) },
    },
  });
}

// Of the axis at the left: as wide as its longest number.
const widthOf = (_, texts) => Math.max(50, 20 + 8 * Math.max(...(texts ?? []).map((text) => text.length)));

function draw(figure) {
  const table = figure.querySelector("table");
  if (table === null) return;
  const { names, data } = readColumns(table);
  const isByDay = data[0].every((time) => time % 86_400 === 0);
  const isInBars = isByDay && table.querySelectorAll("th")[1].className === "number";
  const color = getComputedStyle(figure).color;
  const axis = { stroke: color, grid: { stroke: "#8883" }, ticks: { stroke: "#8883" } };
  const days = isByDay ? { incrs: [1, 2, 7, 14, 28].map((count) => count * 86_400) } : {};
  const timeAxis = {
    ...axis,
    ...days,
    values: (_, times) => times.map((time) => formatTime(new Date(time * 1000), isByDay)),
  };
  const series = names.map((label, at) => {
    if (at === 0) return { value: isByDay ? "{YYYY}-{MM}-{DD}" : "{YYYY}-{MM}-{DD} {HH}:{mm}" };
    const stroke = lineColors[(at - 1) % lineColors.length];
    if (!isInBars) return { label, stroke, width: 2, points: { show: false } };
    return { label, stroke, fill: stroke, width: 0, points: { show: false }, paths: pathsOf(at, names.length - 1) };
  });
  const isOfCounts = data.slice(1).flat().every(Number.isInteger);
  const counts = isOfCounts
    ? { incrs: [...Array(9).keys()].flatMap((zeros) => [1, 2, 5].map((n) => n * 10 ** zeros)) }
    : {};
  const options = {
    width: figure.clientWidth,
    height: 220,
    series,
    axes: [timeAxis, { ...axis, ...counts, size: widthOf }],
    tzDate,
  };
  const last = data[0].at(-1);
  const first = Math.min(data[0][0], last - 13 * 86_400);
  // Whole days at both ends, so that no bar is cut.
  const scales = isInBars ? { x: { range: [first - 43_200, last + 43_200] } } : {};
  const lowest = Math.min(0, ...data.slice(1).flat());
  const y = { range: (_, __, most) => [lowest * 1.1, Math.max(most * 1.1, 1)] };
  const plot = new uPlot({ ...options, scales: { ...scales, y } }, data, (made, begin) => {
    figure.prepend(made.root);
    begin();
  });
  new ResizeObserver(() => plot.setSize({ width: figure.clientWidth, height: options.height })).observe(figure);
}

const drawAll = () => document.querySelectorAll("figure.chart").forEach(draw);
drawAll();

async function refresh() {
  const main = document.querySelector("main");
  const isBusy = document.hidden || main.contains(document.activeElement) || main.querySelector("details[open]");
  if (isBusy) return;
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  main.replaceChildren(...page.querySelector("main").childNodes);
  drawAll();
}

const seconds = Number(document.querySelector("main").dataset.refresh);
if (seconds > 0) setInterval(refresh, seconds * 1000);
