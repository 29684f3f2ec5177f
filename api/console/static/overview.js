// The call from end to end on a linear axis: the waveform of its recording, and its most important moments.
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HEIGHT = 132;
// Room for the values of the plots below, so that a time is at the same place in all.
export const VALUES = 30;

function columnsOf(data, wave, end) {
  if (!wave?.channels.length) return [[0, end], [null, null], [null, null]];
  const begin = data.recording.at_ms / 1000;
  const [one, other = []] = wave.channels;
  const x = one.map((_, part) => begin + (part * wave.duration_s) / one.length);
  // Small sounds are to be seen, too.
  const shown = (peak) => Math.sqrt(peak);
  return [x, one.map(shown), one.map((_, part) => (other.length ? -shown(other[part]) : -shown(one[part])))];
}

function momentsOf(data, texts) {
  const moments = [];
  if (data.answer_ms !== null) moments.push([data.answer_ms, texts.script.answer, "--good"]);
  for (const entry of data.journal) {
    if (entry.name === "call.dtmf") moments.push([entry.at_ms, entry.details.digit, "--accent"]);
    if (entry.name.startsWith("stream.") || entry.name === "stream") moments.push([entry.at_ms, "", "--lane-b"]);
    if (/transferred|failed/.test(entry.name)) moments.push([entry.at_ms, "", "--bad"]);
  }
  if (data.end_ms !== null) moments.push([data.end_ms, texts.script.end, "--bad"]);
  return moments;
}

export class Overview {
  constructor(holder, texts, seek) {
    this.holder = holder;
    this.texts = texts;
    this.seek = seek;
    this.at = null;
    this.data = null;
    this.wave = null;
    new ResizeObserver(() => { if (this.plot && this.plot.width !== this.holder.clientWidth) this.draw(); }).observe(holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data, wave) {
    this.data = data;
    this.wave = wave;
    this.draw();
  }

  draw() {
    if (!this.data || !this.holder.clientWidth) return;
    this.plot?.destroy();
    const { data } = this;
    const end = Math.max(1, (data.end_ms ?? data.now_ms) / 1000);
    const muted = style("--muted");
    const axis = { stroke: muted, grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "11px system-ui, sans-serif" };
    const wave = (name) => ({ stroke: style(name), fill: style(name), width: 0.5, points: { show: false } });
    this.plot = new window.uPlot({
      width: this.holder.clientWidth,
      height: HEIGHT,
      padding: [14, 8, 0, 8],
      legend: { show: false },
      cursor: { x: true, y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: [0, end] }, y: { range: [-1, 1] } },
      axes: [{ ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => `${tick} s`) }, { size: VALUES, values: () => [], grid: { show: false }, ticks: { show: false } }],
      series: [{}, wave("--lane-a"), wave("--lane-b")],
      hooks: { draw: [(plot) => this.mark(plot)] },
    }, columnsOf(data, this.wave, end), this.holder);
    this.plot.over.addEventListener("click", (event) => this.seek(this.plot.posToVal(event.offsetX, "x") * 1000));
  }

  mark(plot) {
    const { ctx } = plot;
    const ratio = window.devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    const line = (ms, label, name, width) => {
      const x = Math.round(plot.valToPos(ms / 1000, "x", true));
      ctx.strokeStyle = ctx.fillStyle = style(name);
      ctx.lineWidth = width * ratio;
      ctx.beginPath();
      ctx.moveTo(x, plot.bbox.top);
      ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
      ctx.stroke();
      ctx.textAlign = x > plot.bbox.left + plot.bbox.width - 40 * ratio ? "right" : "left";
      if (label) ctx.fillText(label, x + (ctx.textAlign === "left" ? 3 : -3) * ratio, plot.bbox.top - 3 * ratio);
    };
    for (const [ms, label, name] of momentsOf(this.data, this.texts)) line(ms, label, name, 1);
    if (this.at !== null) line(this.at, "", "--ink", 2);
    ctx.restore();
  }

  move(ms) {
    this.at = ms;
    this.plot?.redraw(false);
  }
}
