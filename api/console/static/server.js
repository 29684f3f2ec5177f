// Measurements of the server as plots: as they are, by the second, or the mean of what was observed meanwhile.
import { listen } from "./events.js";
import { showTimes } from "./frame.js";

const EVERY_MS = 5000;
const MOST_POINTS = 360;
const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g;
const number = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 4, notation: "compact" });

function samplesOf(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (!match) continue;
    if (!found.has(match[1])) found.set(match[1], []);
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(LABEL)].map((label) => [label[1], label[2]]));
    found.get(match[1]).push({ labels, value: Number(match[3]) });
  }
  return found;
}

const sum = (samples, name) => (samples.get(name) ?? []).reduce((total, sample) => total + sample.value, 0);

class Plot {
  constructor(figure) {
    this.metric = figure.dataset.metric;
    this.kind = figure.dataset.kind;
    this.shown = figure.querySelector("output");
    this.frame = figure.querySelector(".plot");
    this.before = null;
    this.data = [[], []];
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const muted = getComputedStyle(document.documentElement).getPropertyValue("--muted");
    const axis = { stroke: muted, grid: { show: false }, ticks: { show: false }, font: "11px system-ui", size: 20 };
    this.plot = new window.uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { range: () => this.times() },
        y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] },
      },
      axes: [axis, { ...axis, size: 44, values: (_, ticks) => ticks.map((tick) => number.format(tick)) }],
      series: [{}, { stroke: colour, width: 1.5, points: { show: false } }],
    }, this.data, this.frame);
  }

  size() {
    return { width: Math.max(this.frame.clientWidth, 100), height: 90 };
  }

  // At least the last minute: of a single reading the library would show years.
  times() {
    const [at] = this.data;
    const now = at.at(-1) ?? Date.now() / 1000;
    return [Math.min(at[0] ?? now, now - 60), now];
  }

  add(at, samples) {
    const value = this.next(at, samples);
    if (value === null) return;
    this.data[0].push(at);
    this.data[1].push(value);
    if (this.data[0].length > MOST_POINTS) this.data.forEach((column) => column.shift());
    this.shown.textContent = number.format(value);
    this.plot.setData(this.data);
  }

  // Null until there are two readings to compare.
  next(at, samples) {
    if (this.kind === "gauge") return sum(samples, this.metric);
    const mean = this.kind === "mean";
    const now = {
      at,
      total: sum(samples, mean ? `${this.metric}_sum` : this.metric),
      count: sum(samples, `${this.metric}_count`),
    };
    const before = this.before;
    this.before = now;
    if (before === null || now.total < before.total) return null;
    if (!mean) return (now.total - before.total) / (now.at - before.at);
    return now.count > before.count ? (now.total - before.total) / (now.count - before.count) : 0;
  }
}

const list = document.getElementById("rejected");
const none = list.firstElementChild;

function showRejected(samples) {
  document.getElementById("banned").textContent = String(sum(samples, "trunkline_sip_banned_sources"));
  const rejected = (samples.get("trunkline_sip_rejected_total") ?? []).filter((sample) => sample.value > 0);
  // Those of a process that was restarted are not of the present one.
  if (!rejected.length) {
    list.replaceChildren(none);
    return;
  }
  const rows = rejected.map((sample) => {
    const row = document.createElement("tr");
    const reason = document.createElement("td");
    const count = document.createElement("td");
    reason.textContent = sample.labels.reason ?? "";
    count.textContent = String(sample.value);
    count.className = "number";
    row.append(reason, count);
    return row;
  });
  list.replaceChildren(...rows);
}

const frame = document.querySelector("[data-metrics]");
const plots = [...frame.querySelectorAll("figure")].map((figure) => new Plot(figure));

async function read() {
  try {
    const answer = await fetch(frame.dataset.metrics);
    if (!answer.ok) return;
    const samples = samplesOf(await answer.text());
    const at = Date.now() / 1000;
    plots.forEach((plot) => plot.add(at, samples));
    showRejected(samples);
  } catch {
    // The server restarts; the next reading goes on.
  }
}

/** Take over what the server wrote into the page, as it is now; the plots go on. */
async function refresh() {
  const answer = await fetch(window.location.href).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-fresh]")) {
    const now = page.getElementById(part.id);
    if (now) part.replaceWith(document.importNode(now, true));
  }
  showTimes();
}

listen({ onRefresh: refresh });
window.addEventListener("resize", () => plots.forEach((plot) => plot.plot.setSize(plot.size())));
read();
setInterval(() => { if (!document.hidden) read(); }, EVERY_MS);
