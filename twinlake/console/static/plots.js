// Draws what the console has of the last days, and asks for it once a minute while the page is visible.
// Every name is set as text; where nothing is known a line has a gap.

const EVERY_MS = 60000;
const OLD_MS = 180000;
export const HEIGHT = 200;
export const COLOURS = 8;

// Of what is smaller than a hundredth the first digits that say something.
function numbers(options) {
  const usual = new Intl.NumberFormat("en", { maximumFractionDigits: 2, ...options });
  const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, ...options });
  return (value) => (value !== 0 && Math.abs(value) < 0.01 ? small : usual).format(value);
}
export const compact = numbers({ notation: "compact" });
export const exact = numbers({});

const LONG_S = 200 * 86400;
const at = (seconds) => new Date(seconds * 1000);
const utc = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const hour = utc({ hour: "2-digit", minute: "2-digit" });
const day = utc({ day: "numeric", month: "short" });
const month = utc({ month: "short", year: "numeric" });
const moment = utc({ dateStyle: "medium", timeStyle: "short" });

// Of the places on an axis: months where it is long, else days, and hours between them.
export function dates(splits) {
  const long = splits.at(-1) - splits[0] > LONG_S;
  return splits.map((one) => (long ? month : one % 86400 ? hour : day).format(at(one)));
}
export const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A value between two gaps is no line: it is a point.
export function alone(plot, number) {
  const values = plot.data[number];
  const found = [];
  for (let i = 0; i < values.length; i++) {
    if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
  }
  return found;
}

// While nobody points at a line its legend has the newest values; the newest step may have just begun.
function newest(plot) {
  const end = plot.data[0].length - 1;
  return plot.data.slice(1).some((values) => values[end] != null) ? end : Math.max(0, end - 1);
}

function idle(plot) {
  if (plot.legend.idx == null) plot.setLegend({ idx: newest(plot) }, false);
}

function series(curve, number) {
  const stroke = colour(curve.is_bound ? "--bad" : "--plot-" + ((curve.colour ?? number) % COLOURS));
  return {
    label: curve.name, stroke, width: 1.5, dash: curve.is_bound ? [6, 4] : undefined, spanGaps: false,
    value: (plot, value) => (value == null ? "" : exact(value)),
    points: { show: false, filter: alone, size: 4, stroke, fill: stroke },
  };
}

// One moment alone is shown in the middle of something.
const wide = (first, last) => (first < last ? [first, last] : [first - 60, first + 60]);

function options(curves, width) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  return {
    width, height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(at(seconds), "Etc/UTC"),
    hooks: { ready: [idle], setData: [idle], setLegend: [idle] },
    cursor: { drag: { x: false, y: false }, sync: { key: "plots" } },
    scales: {
      x: { time: true, range: (plot) => wide(plot.data[0][0], plot.data[0].at(-1)) },
      y: { range: (plot, least, most) => [least < 0 ? least * 1.1 : 0, most > 0 ? most * 1.1 : least < 0 ? 0 : 1] },
    },
    axes: [
      { ...axis, values: (plot, splits) => dates(splits) },
      { ...axis, size: 56, values: (plot, splits) => splits.map(compact) },
    ],
    series: [
      { label: "at", value: (plot, one) => (one == null ? "" : moment.format(at(one))) },
      ...curves.map(series),
    ],
  };
}

function inWords(plot) {
  const lasts = plot.curves.map((one) => {
    const last = one.values.at(-1) ?? one.values.at(-2);
    return one.name + " " + (last == null ? "not known" : exact(last));
  });
  return plot.title + "; last values: " + (lasts.join(", ") || "none");
}

export function add(parent, kind, text, className) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return parent.appendChild(made);
}

function plotting(section) {
  const charts = section.querySelector(".charts");
  const note = section.querySelector(".note");
  let heard = Date.now();
  let busy = false;
  let drawn = [];
  let shape = "";

  const widths = new ResizeObserver((boxes) => {
    for (const box of boxes) {
      const one = drawn.find((each) => each.box === box.target);
      const width = Math.floor(box.contentRect.width);
      if (one?.chart && width > 0 && width !== one.chart.width) one.chart.setSize({ width, height: HEIGHT });
    }
  });

  function build(found) {
    widths.disconnect();
    for (const one of drawn) one.chart?.destroy();
    charts.replaceChildren();
    drawn = found.plots.map((plot) => {
      const box = add(charts, "div", "", "chart");
      add(box, "h3", plot.title);
      if (!plot.curves.length) {
        add(box, "p", "Nothing is known of it in this time.");
        return { box };
      }
      const data = [found.times, ...plot.curves.map((one) => one.values)];
      const chart = new uPlot(options(plot.curves, box.clientWidth), data, box);
      if (plot.others) add(box, "p", "and " + plot.others + " more, which are lower");
      widths.observe(box);
      return { box, chart };
    });
  }

  function draw(found) {
    note.textContent = found.note;
    const now = JSON.stringify(found.plots.map((plot) => [plot.others, plot.curves.map((one) => one.name)]));
    if (now !== shape) build(found);
    else drawn.forEach((one, i) => one.chart?.setData([found.times, ...found.plots[i].curves.map((each) => each.values)]));
    shape = now;
    drawn.forEach((one, i) => {
      const canvas = one.box.querySelector("canvas");
      canvas?.setAttribute("role", "img");
      canvas?.setAttribute("aria-label", inWords(found.plots[i]));
    });
  }

  async function ask() {
    if (busy || document.visibilityState !== "visible") return;
    busy = true;
    try {
      const stop = AbortSignal.timeout(20000);
      const answer = await fetch(section.dataset.plots, { cache: "no-store", signal: stop, redirect: "error" });
      if (answer.status === 401) {
        location.assign("/sign-in");
        return;
      }
      if (answer.ok) {
        draw(await answer.json());
        heard = Date.now();
      }
    } catch (error) {
      // it is asked again; until then what is shown grows old
    } finally {
      busy = false;
      section.classList.toggle("old", Date.now() - heard > OLD_MS);
    }
  }

  ask();
  setInterval(ask, EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (Date.now() - heard >= EVERY_MS) ask();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    shape = ""; // the legend keeps the colours that it was made with
    ask();
  });
}

for (const section of document.querySelectorAll("[data-plots]")) plotting(section);
