// Charts, drawn from the tables that a page has anyway, and the refresh of pages that ask for it. Pages work without.
// Times are UTC, as in the tables.
const tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
const formatTime = (time, isByDay) => (isByDay ? time.toISOString().slice(5, 10) : time.toISOString().slice(11, 16));
const lineColors = ["#2f6fde", "#d2691e", "#2e8b57"];

function draw(figure) {
  const table = figure.querySelector("table");
  if (table === null) return;
  const names = [...table.querySelectorAll("th")].map((cell) => cell.textContent);
  const rows = [...table.querySelectorAll("tbody tr")].map((row) =>
    [...row.cells].map((cell, at) => {
      const text = cell.querySelector("time")?.dateTime ?? cell.textContent;
      return at === 0 ? Date.parse(text) / 1000 : Number(text);
    }),
  );
  const isByDay = rows.every(([time]) => time % 86_400 === 0);
  const data = names.map((_, at) => rows.map((row) => row[at]));
  const color = getComputedStyle(figure).color;
  const axis = { stroke: color, grid: { stroke: "#8883" }, ticks: { stroke: "#8883" } };
  const timeAxis = { ...axis, values: (_, times) => times.map((time) => formatTime(new Date(time * 1000), isByDay)) };
  const series = names.map((label, at) =>
    at === 0 ? { value: "{YYYY}-{MM}-{DD} {HH}:{mm}" } : { label, stroke: lineColors[at - 1], width: 2 },
  );
  const options = { width: figure.clientWidth, height: 220, series, axes: [timeAxis, axis], tzDate };
  new uPlot({ ...options, scales: { y: { range: { min: { pad: 0, hard: 0 }, max: { pad: 0.1 } } } } }, data, figure);
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
