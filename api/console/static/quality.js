// Quality of each leg and direction over time, on the axis of the overview: a small plot for each measure.
import { VALUES } from "./overview.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HEIGHT = 56;
const TIMES = 18;
// Name of a measure, the lines of the time axis that have it, and the range of its plot.
const MEASURES = [
  ["level_dbfs", "levels", () => [-60, 0]],
  ["mos", "quality", (low, high) => [Math.min(1, low), Math.max(4.5, high)]],
  ["jitter_ms", "quality", upwards(10)],
  ["packet_loss_pct", "quality", upwards(1)],
];

// From zero to what there is, and at least to `least`, so that noise does not look like a mountain.
function upwards(least) {
  return (_, high) => [0, Math.max(least, high * 1.1)];
}

const strokeOf = (line) => ({ stroke: style(`--lane-${line.leg}`), dash: line.direction === "sent" ? [5, 3] : [] });

// One column of times, and one of values for each line.
function columnsOf(lines, name) {
  const times = [...new Set(lines.flatMap((line) => line.points.map((point) => point.at_ms)))].sort((one, other) => one - other);
  const places = new Map(times.map((at, place) => [at, place]));
  const columns = lines.map((line) => {
    const column = new Array(times.length).fill(undefined);
    for (const point of line.points) column[places.get(point.at_ms)] = point[name];
    return column;
  });
  return [times.map((at) => at / 1000), ...columns];
}

function summary(lines, name, texts) {
  return lines.map((line) => {
    const values = line.points.map((point) => point[name]).filter((value) => value !== null);
    const told = values.length ? `${Math.min(...values)} \u2013 ${Math.max(...values)}` : "\u2013";
    return `${texts.leg} ${line.leg} ${texts[line.direction]}: ${told}`;
  }).join("; ");
}

export class QualityPlots {
  constructor(holder, texts) {
    this.holder = holder;
    this.texts = texts.script;
    this.key = holder.querySelector("ul");
    this.frames = MEASURES.map(([name]) => holder.querySelector(`[data-measure=${name}]`));
    this.plots = [];
    this.at = null;
    this.drawn = "";
    new ResizeObserver(() => this.draw()).observe(holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.drawn = ""; this.draw(); });
  }

  show(data) {
    // One interval says no more than the table of the call.
    const place = (line) => `${line.leg} ${line.direction}`;
    const enough = (lines) => (lines.some((line) => line.points.length > 1) ? lines.filter((line) => line.points.length) : [])
      .sort((one, other) => place(one).localeCompare(place(other)));
    this.lines = { quality: enough(data.quality), levels: enough(data.levels) };
    this.end = Math.max(1, (data.end_ms ?? data.now_ms) / 1000);
    this.holder.hidden = !this.lines.quality.length && !this.lines.levels.length;
    this.draw();
  }

  draw() {
    if (this.holder.hidden || !this.holder.clientWidth) return;
    const { quality, levels } = this.lines;
    const drawn = `${this.holder.clientWidth} ${this.end} ${[...quality, ...levels].map((line) => line.points.at(-1).at_ms)}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.plots.forEach((plot) => plot.destroy());
    this.plots = MEASURES.flatMap(([name, source, range], number) => {
      const [frame, lines] = [this.frames[number], this.lines[source]];
      frame.parentElement.hidden = !lines.length;
      return lines.length ? [this.plot(name, lines, range, frame, number === MEASURES.length - 1 || !quality.length)] : [];
    });
    this.key.replaceChildren(...(quality.length ? quality : levels).map((line) => this.keyOf(line)));
  }

  // The last one has the times of all.
  plot(name, lines, range, frame, isLast) {
    const muted = style("--muted");
    const axis = { stroke: muted, grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    frame.setAttribute("aria-label", `${frame.dataset.label}. ${summary(lines, name, this.texts)}`);
    return new window.uPlot({
      width: frame.clientWidth,
      height: isLast ? HEIGHT + TIMES : HEIGHT,
      padding: [6, 8, isLast ? 0 : 5, 8],
      legend: { show: false },
      cursor: { x: true, y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: [0, this.end] }, y: { range: (_, low, high) => range(low, high) } },
      axes: [
        { ...axis, size: isLast ? TIMES : 0, values: (_, ticks) => ticks.map((tick) => (isLast ? `${tick} s` : "")) },
        { ...axis, size: VALUES, space: 18, values: (_, ticks) => ticks.map(Math.abs) },
      ],
      series: [{}, ...lines.map((line) => ({ ...strokeOf(line), width: 1.5, spanGaps: true, points: { show: line.points.length < 50, size: 4 } }))],
      hooks: { draw: [(plot) => this.mark(plot)] },
    }, columnsOf(lines, name), frame);
  }

  keyOf(line) {
    const item = document.createElement("li");
    item.className = `leg-${line.leg} ${line.direction}`;
    item.textContent = `${this.texts.leg} ${line.leg}, ${this.texts[line.direction]}`;
    return item;
  }

  mark(plot) {
    if (this.at === null) return;
    const { ctx } = plot;
    const x = Math.round(plot.valToPos(this.at / 1000, "x", true));
    ctx.save();
    ctx.strokeStyle = style("--ink");
    ctx.lineWidth = 2 * window.devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, plot.bbox.top);
    ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  move(ms) {
    this.at = ms;
    this.plots.forEach((plot) => plot.redraw(false));
  }
}
