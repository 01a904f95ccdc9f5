// Plots what a page shows of an answer: numbers over time, over another number, or by category.
// The values are those of the table below it, which says the same without a picture.

import { COLOURS, HEIGHT, add, alone, colour, compact, dates, exact } from "./plots.js";

const NUMBER = /^(tinyint|smallint|int|bigint|float|double|decimal)\b/;
const TIME = /^(timestamp|date)/;
const TEXT = /^(string|char|varchar|boolean)/;
const MOST_BARS = 50;
const ALL = "-1";

const kindOf = (type) => (NUMBER.test(type) ? "number" : TIME.test(type) ? "time" : TEXT.test(type) ? "text" : "");
const known = (value) => (Number.isFinite(value) ? value : null);
const parsed = {
  number: (text) => known(Number(text)),
  time: (text) => known(Date.parse(text) / 1000),
  text: (text) => text,
};
const when = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", dateStyle: "medium", timeStyle: "medium" });
const named = (x) => (one) => (Number.isInteger(one) ? String(x.values[one] ?? "").slice(0, 14) : "");

// [{name, kind, values}], NULL as null.
function columnsOf(table) {
  const rows = [...table.tBodies[0].rows];
  return [...table.tHead.rows[0].cells].map((head, at) => {
    const kind = kindOf(head.dataset.type ?? "");
    const read = parsed[kind] ?? parsed.text;
    const values = rows.map(({ cells }) => (cells[at].classList.contains("null") ? null : read(cells[at].textContent)));
    return { name: head.firstChild.textContent, kind, values };
  });
}

// What is drawn: {xs, curves: [{name, values}], left: how many curves or rows there was no room for, under: how
// many rows are at the place of another of their line}.
export function drawn(x, ys, split) {
  if (x.kind === "text") {
    const count = Math.min(MOST_BARS, x.values.length);
    const xs = Array.from({ length: count }, (_, i) => i);
    return { xs, curves: ys.map((y) => ({ name: y.name, values: y.values.slice(0, count) })), left: x.values.length - count };
  }
  const order = x.values.map((_, i) => i).filter((i) => x.values[i] !== null);
  order.sort((a, b) => x.values[a] - x.values[b]);
  if (!split) {
    const xs = order.map((i) => x.values[i]);
    const curves = ys.map((y) => ({ name: y.name, values: order.map((i) => y.values[i]) }));
    return { xs, curves: curves.slice(0, COLOURS), left: Math.max(0, curves.length - COLOURS) };
  }
  const xs = [...new Set(order.map((i) => x.values[i]))];
  const place = new Map(xs.map((one, i) => [one, i]));
  const found = new Map();
  let under = 0;
  for (const i of order) {
    const name = split.values[i] ?? "NULL";
    if (!found.has(name)) found.set(name, { name, values: new Array(xs.length).fill(null) });
    const { values } = found.get(name);
    const at = place.get(x.values[i]);
    if (values[at] !== null) under += 1;
    values[at] = ys[0].values[i] ?? values[at];
  }
  const curves = [...found.values()];
  const most = (one) => Math.max(...one.values.map((value) => value ?? -Infinity));
  curves.sort((a, b) => most(b) - most(a));
  return { xs, curves: curves.slice(0, COLOURS), left: Math.max(0, curves.length - COLOURS), under, isSplit: true };
}

function options(x, made, width) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const bars = x.kind === "text";
  const label = (one) => (bars ? (x.values[one] ?? "NULL") : x.kind === "time" ? when.format(one * 1000) : exact(one));
  const series = made.curves.map((curve, number) => {
    const stroke = colour("--plot-" + (number % COLOURS));
    return {
      label: curve.name, stroke, width: 1.5, spanGaps: Boolean(made.isSplit),
      value: (plot, value) => (value == null ? "" : exact(value)),
      points: { show: false, filter: alone, size: 4, stroke, fill: stroke },
      ...(bars ? { fill: stroke, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } } : {}),
    };
  });
  const texts = bars ? (splits) => splits.map(named(x)) : x.kind === "time" ? dates : (splits) => splits.map(compact);
  return {
    width, height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: x.kind === "time", ...(bars ? { range: () => [-0.5, made.xs.length - 0.5] } : {}) },
      y: { range: (plot, least, most) => [Math.min(0, least * 1.1), Math.max(0, most * 1.1) || 1] },
    },
    axes: [
      { ...axis, values: (plot, splits) => texts(splits) },
      { ...axis, size: 56, values: (plot, splits) => splits.map(compact) },
    ],
    series: [{ label: x.name, value: (plot, one) => (one == null ? "" : label(one)) }, ...series],
  };
}

function inWords(x, made) {
  const of = made.curves.map((one) => {
    const values = one.values.filter((value) => value !== null);
    return one.name + (values.length ? " from " + exact(Math.min(...values)) + " to " + exact(Math.max(...values)) : " not known");
  });
  return "By " + x.name + ": " + of.join("; ");
}

function choice(parent, label, list) {
  const box = add(parent, "label", label + " ");
  const select = add(box, "select");
  select.append(...list.map(([value, name]) => new Option(name, value)));
  return select;
}

function plotting(section) {
  const columns = columnsOf(section.querySelector("table"));
  const of = (kind) => columns.filter((one) => one.kind === kind);
  const numbers = of("number");
  const xs = [...of("time"), ...of("text"), ...(numbers.length > 1 ? numbers : [])];
  if (!section.querySelector("tbody tr") || !numbers.length || !xs.length) return;

  const plot = section.querySelector(".result-plot");
  plot.hidden = false;
  const choices = add(plot, "p");
  const place = (one) => String(columns.indexOf(one));
  const x = choice(choices, "over", xs.map((one) => [place(one), one.name]));
  const y = choice(choices, "numbers", [[ALL, "all"], ...numbers.map((one) => [place(one), one.name])]);
  const split = choice(choices, "a line for each", [[ALL, "column"], ...of("text").map((one) => [place(one), one.name])]);
  const box = add(plot, "div", "", "chart");
  const note = add(plot, "p", "", "age");
  let chart = null;

  // Of several rows with one time, each is a point of the line of its text, where there is one.
  const repeats = new Set(columns[x.value].values).size < columns[x.value].values.length;
  if (columns[x.value].kind === "time" && repeats && of("text").length) split.value = place(of("text")[0]);

  function draw() {
    const over = columns[x.value];
    const isText = over.kind === "text";
    split.disabled = isText;
    const by = isText || split.value === ALL ? null : columns[split.value];
    const all = numbers.filter((one) => one !== over);
    const one = y.value === ALL || columns[y.value] === over ? null : columns[y.value];
    const ys = one ? [one] : isText || by ? all.slice(0, 1) : all;
    const made = drawn(over, ys, by);
    chart?.destroy();
    chart = new uPlot(options(over, made, box.clientWidth), [made.xs, ...made.curves.map((each) => each.values)], box);
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", inWords(over, made));
    const left = made.left ? (isText ? made.left + " more rows" : made.left + " more lines") + " are not drawn. " : "";
    const under = made.under ? "Not drawn, for another row has the place on the line: " + made.under + ". " : "";
    note.textContent = left + under + section.dataset.note + (over.kind === "time" ? " Times are UTC." : "");
  }

  for (const select of [x, y, split]) select.addEventListener("change", draw);
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (chart && width > 0 && width !== chart.width) chart.setSize({ width, height: HEIGHT });
  }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

if (typeof document !== "undefined") {
  for (const section of document.querySelectorAll("[data-result]")) plotting(section);
}
