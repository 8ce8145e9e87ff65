// Draws the page from JSON. Texts of users reach the document by textContent alone, never as HTML.
"use strict";

const MINUTE = 60, HOUR = 3600, DAY = 86400;
let all = null, chosen = 0, kept = { contents: null, slider: 0 };

// --- small things ---------------------------------------------------------------------------------

function make(tag, attributes, ...children) {
  const space = make.svg.has(tag) ? "http://www.w3.org/2000/svg" : null;
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}
make.svg = new Set(["svg", "g", "rect", "line", "circle", "text", "title", "polyline"]);

const put = (selector, ...children) => document.querySelector(selector).replaceChildren(...children.flat().filter(Boolean));
const table = (name) => all.queries[chosen].tables[name];
const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);

function bytes(size) {
  if (size === null || size === undefined) return "";
  let value = size;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1024 || unit === "GB") return (unit === "B" ? value : value.toFixed(1)) + " " + unit;
    value /= 1024;
  }
}

function seconds(value) {
  if (value === null || value === undefined) return "";
  for (const [unit, size] of [["d", DAY], ["h", HOUR], ["min", MINUTE]]) {
    if (Math.abs(value) >= size) return (value / size).toFixed(1).replace(/\.0$/, "") + " " + unit;
  }
  return value.toFixed(2).replace(/\.?0+$/, "") + " s";
}

function instant(micros, room) {
  const text = new Date(micros / 1000).toISOString().replace("T", " ").replace(/\.000Z$|Z$/, "");
  return room === undefined ? text : room < 600e6 ? text.slice(11, 19) : room < 20 * HOUR * 1e6 ? text.slice(11, 16) : text.slice(5, 16);
}

const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const across = () => Math.max(document.querySelector("#timeline .body").clientWidth, 280);

function shown(column, value) {
  if (value === null || value === undefined) return "";
  if (column === "bytes" || column === "state_bytes") return bytes(value);
  if (["behind_now", "seconds", "at_least", "less_than"].includes(column)) return seconds(value);
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(6).replace(/\.?0+$/, "");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return /^\d{4}-\d\d-\d\dT/.test(value) ? value.replace("T", " ").replace(/\+00:00$/, "").replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") : cut(value, 400);
  return cut(JSON.stringify(value), 400);
}

function grid(data, most, columns) {
  if (!data || !data.rows.length) return make("p", {}, data && data.complete === false ? "Not known: the program cannot be read here, and the plan says why." : "Nothing.");
  const differs = new Set(data.rows.map((row) => row.operator)).size > 1;
  const names = (columns || data.columns).filter((name) => (name !== "operator" || differs) && data.rows.some((row) => row[name] !== null && row[name] !== undefined));
  const numeric = new Set(names.filter((name) => data.rows.some((row) => typeof row[name] === "number")));
  const head = names.map((name) => make("th", { class: numeric.has(name) ? "number" : null, scope: "col" }, name.replaceAll("_", " ")));
  const lines = data.rows.slice(0, most).map((row) => make("tr", {}, names.map((name) => {
    const text = shown(name, row[name]);
    return make("td", { class: numeric.has(name) ? "number" : `${name}_micros` in row ? "instant" : text.length > 30 ? "long" : null, dir: numeric.has(name) ? null : "auto" }, text);
  })));
  const more = data.rows.length > most || data.complete === false;
  return make("div", {},
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": data.question || "table" },
      make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, lines))),
    more ? make("p", { class: "hint" }, "There is more: these are the first rows.") : null);
}

const healthy = (data) => make("p", { class: "healthy" }, data.healthy);

// --- the parts ------------------------------------------------------------------------------------

function drawHealth() {
  put("#health .tiles", all.queries[chosen].health.map((each) => make("div", { class: each.worry ? "tile worry" : "tile" },
    make("div", { class: "asks" }, each.question),
    make("div", { class: "figure" }, make("span", { class: "mark" }, each.worry ? "▲ look: " : "● "), each.figure),
    each.table === "state" ? spark() : null,
    make("p", { class: "healthy" }, each.healthy, make("br"), "How to: ", make("code", {}, "docs/" + each.page)))));
}

function spark() {
  const sizes = table("batches").rows.map((row) => row.state_bytes).filter((size) => size !== null);
  if (sizes.length < 3) return null;
  const most = Math.max(...sizes, 1);
  const points = sizes.map((size, at) => `${(at / (sizes.length - 1)) * 296 + 2},${38 - (size / most) * 34}`).join(" ");
  return make("svg", { viewBox: "0 0 300 40", role: "img", "aria-label": `State over ${sizes.length} batches, at most ${bytes(most)}` },
    make("polyline", { class: "spark", points }));
}

function drawTimeline() {
  const windows = table("windows").rows.filter((row) => row.end_micros !== null).slice(0, 60);
  const endless = table("windows").rows.filter((row) => row.end_micros === null);
  const mark = table("watermarks").rows.find((row) => row.holds_back && row.watermark_micros !== null);
  const late = table("late").rows;
  const times = [...windows.flatMap((row) => [row.start_micros, row.end_micros]), ...(mark ? [mark.watermark_micros] : [])];
  const parts = [];
  if (!windows.length && !mark) parts.push(make("p", {}, "No window is open, and there is no watermark yet."));
  else parts.push(line(windows, mark, late, Math.min(...times), Math.max(...times)));
  parts.push(make("div", { class: "legend" },
    make("span", {}, make("b", { class: "open" }), "open: waits for the watermark"),
    make("span", {}, make("b", { class: "fired" }), "fired: may be refined by late rows"),
    make("span", {}, make("b", { class: "mark" }), "watermark"),
    make("span", {}, make("b", { class: "late" }), "late rows")));
  for (const row of endless) parts.push(make("p", {}, `Bucket ${row.bucket}: ${row.why_open}, ${row.keys} keys.`));
  parts.push(healthy(table("windows")), !windows.length ? null : make("details", { open: windows.length < 12 },
    make("summary", {}, `${counted(windows.length, "window")} as a table`),
    grid(table("windows"), 100, ["bucket", "start", "end", "keys", "elements", "partials", "bytes", "cleaned_when", "why_open"])));
  put("#timeline .body", parts);
}

function line(windows, mark, late, first, last) {
  const width = across(), narrow = width < 600, row = 22, left = 12;
  const lanes = place(windows), below = late.length ? 30 : 0, height = 40 + Math.max(lanes.count, 1) * row + below + 30;
  const room = Math.max(last - first, 1), from = first - room * (late.length ? 0.12 : 0.03), to = last + room * 0.06;
  const x = (time) => left + ((Math.max(time, from) - from) / (to - from)) * (width - 2 * left);
  const most = Math.max(...windows.map((each) => each.keys || 1), 1);
  const drawn = [];
  for (let step = 0; step <= (narrow ? 3 : 6); step++) {
    const time = from + ((to - from) * step) / (narrow ? 3 : 6);
    const anchor = step === 0 ? "start" : step === (narrow ? 3 : 6) ? "end" : "middle";
    drawn.push(make("line", { class: "axis", x1: x(time), x2: x(time), y1: 34, y2: height - 24 }),
      make("text", { class: "quiet", x: x(time), y: height - 8, "text-anchor": anchor }, instant(Math.round(time), to - from)));
  }
  windows.forEach((each, at) => {
    const fired = each.why_open.startsWith("fired"), y = 38 + lanes.of[at] * row;
    const wide = Math.max(x(each.end_micros) - x(each.start_micros), 3), full = (each.keys || 1) / most;
    const words = `${instant(each.start_micros)} to ${instant(each.end_micros)}: ${each.keys} keys, ${bytes(each.bytes)}; ${each.why_open}`;
    drawn.push(make("g", {}, make("title", {}, words),
      make("rect", { class: fired ? "fired" : "open", x: x(each.start_micros), y, width: wide, height: row - 5, rx: 3, "fill-opacity": 0.35 + 0.65 * full }),
      wide > 70 ? make("text", { x: x(each.start_micros) + 5, y: y + row - 9 }, cut(`${counted(each.keys, "key")}${fired ? ", fired" : ""}`, Math.floor(wide / 7))) : null));
  });
  if (mark) {
    const at = x(mark.watermark_micros), right = at > width / 2;
    drawn.push(make("line", { class: "watermark", x1: at, x2: at, y1: 22, y2: height - 24 }),
      make("text", { class: "marked", x: right ? at - 6 : at + 6, y: 16, "text-anchor": right ? "end" : "start" },
        cut(narrow ? `${instant(mark.watermark_micros).slice(11, 19)}, held by ${mark.name}` : `watermark ${instant(mark.watermark_micros).slice(5, 19)}, held by ${mark.name}`, narrow ? 32 : 80)));
  }
  late.slice(-40).forEach((each) => {
    const time = (mark ? mark.watermark_micros : last) - each.at_least * 1e6, size = 3 + 2 * Math.log10(1 + each.rows);
    drawn.push(make("g", {}, make("title", {}, `${each.rows} rows ${each.how_late} late, ${each.dropped} dropped, of the hour ${instant(each.hour_micros)}`),
      make("circle", { class: "late", cx: x(time), cy: height - 32 - (each.hour_micros / 3.6e9 % 3) * 5, r: size })));
  });
  const label = `${counted(windows.length, "window")} on a line of event time` + (mark ? `, the watermark at ${instant(mark.watermark_micros)}` : "");
  return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, drawn);
}

function place(windows) {  // the lane of each bar: the first that is free
  const ends = [], of = windows.map((each) => {
    let lane = ends.findIndex((end) => end <= each.start_micros);
    if (lane < 0) lane = ends.length < 24 ? ends.length : windows.indexOf(each) % 24;
    ends[lane] = Math.max(ends[lane] || 0, each.end_micros);
    return lane;
  });
  return { of, count: ends.length };
}

function drawState() {
  const state = table("state"), parts = [];
  const sum = state.rows.reduce((total, row) => total + row.bytes, 0);
  if (sum) parts.push(treemap(state.rows, sum));
  const buckets = new Map();
  state.rows.forEach((row) => buckets.set(row.bucket, (buckets.get(row.bucket) || 0) + row.bytes));
  const sizes = [...buckets.values()], mean = sum / Math.max(sizes.length, 1);
  if (sizes.length > 1) parts.push(make("p", {}, `The largest of ${sizes.length} buckets has ${(Math.max(...sizes) / Math.max(mean, 1)).toFixed(1)} times the mean: ${Math.max(...sizes) > 2 * mean ? "▲ state is skewed." : "● state is even."}`));
  parts.push(healthy(state), grid(state, 50), make("h3", {}, "Largest keys"), grid(table("keys"), 20), healthy(table("keys")));
  for (const name of ["over", "join", "rolling", "deduplication", "patterns", "nodes", "between"]) {
    const held = table(name);
    if (held.rows.length) parts.push(make("h3", {}, held.question), grid(held, 20), healthy(held));
  }
  if (table("timers").rows.length) parts.push(make("h3", {}, table("timers").question), grid(table("timers"), 12), healthy(table("timers")));
  put("#state .body", parts);
}

function treemap(rows, sum) {
  const width = across(), height = Math.min(150, 40 + 30 * rows.length), drawn = [];
  let x = 0;
  const buckets = [...new Set(rows.map((row) => row.bucket))];
  for (const bucket of buckets) {
    const own = rows.filter((row) => row.bucket === bucket), size = own.reduce((total, row) => total + row.bytes, 0);
    const wide = (size / sum) * width;
    let y = 0;
    for (const row of own.sort((one, other) => other.bytes - one.bytes)) {
      const high = (row.bytes / Math.max(size, 1)) * height;
      drawn.push(make("g", {}, make("title", {}, `bucket ${bucket}, ${row.structure}: ${bytes(row.bytes)}`),
        make("rect", { class: "box", x: x + 1, y: y + 1, width: Math.max(wide - 2, 1), height: Math.max(high - 2, 1) }),
        wide > 60 && high > 18 ? make("text", { x: x + 7, y: y + 15 }, cut(`${bucket}: ${row.structure}, ${bytes(row.bytes)}`, Math.floor(wide / 7))) : null));
      y += high;
    }
    x += wide;
  }
  return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${bytes(sum)} of state by bucket and structure` }, drawn);
}

function drawLateness() {
  const late = table("late"), spans = new Map();
  late.rows.forEach((row) => {
    const span = spans.get(row.at_least) || { at_least: row.at_least, less_than: row.less_than, how_late: row.how_late, rows: 0, dropped: 0 };
    span.rows += row.rows; span.dropped += row.dropped;
    spans.set(row.at_least, span);
  });
  const bars = [...spans.values()].sort((one, other) => one.at_least - other.at_least);
  if (!bars.length) return put("#lateness .body", make("p", {}, "No row was late."), healthy(late));
  const steps = [0, ...bars.map((bar) => bar.less_than)], say = make("p", { "aria-live": "polite" });
  const picture = make("div", {}), range = make("input", { type: "range", min: 0, max: steps.length - 1, value: Math.min(kept.slider, steps.length - 1), id: "delay" });
  const draw = () => {
    kept.slider = +range.value;
    const delay = steps[range.value], rows = bars.reduce((total, bar) => total + bar.rows, 0);
    const saved = bars.filter((bar) => bar.less_than <= delay).reduce((total, bar) => total + bar.rows, 0);
    range.setAttribute("aria-valuetext", seconds(delay));
    say.textContent = delay === 0 ? `${rows.toLocaleString("en")} rows were late under the delay of now. Move the slider to see what a longer one would have saved.`
      : `With a delay ${seconds(delay)} longer, ${((100 * saved) / rows).toFixed(1)} % of the late rows would have been on time, and every result ${seconds(delay)} later.`;
    picture.replaceChildren(histogram(bars, delay));
  };
  range.addEventListener("input", draw);
  draw();
  put("#lateness .body", make("label", { for: "delay", class: "wide" }, "Longer delay ", range), say, picture, healthy(late), grid(late, 60));
}

function histogram(bars, delay) {
  const width = across(), height = 190, each = Math.min((width - 20) / bars.length, 150);
  const most = Math.max(...bars.map((bar) => bar.rows));
  return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Late rows by how late they were" }, bars.map((bar, at) => {
    const high = Math.max((bar.rows / most) * 125, 2), x = 10 + at * each, saved = bar.less_than <= delay;
    return make("g", {}, make("title", {}, `${bar.how_late}: ${bar.rows} rows, ${bar.dropped} dropped`),
      make("rect", { class: saved ? "bar saved" : "bar", x: x + 3, y: 150 - high, width: each - 6, height: high }),
      make("text", { x: x + each / 2, y: 144 - high, "text-anchor": "middle" }, bar.rows.toLocaleString("en")),
      make("text", { class: "quiet", x: x + each / 2, y: 166, "text-anchor": "middle" }, each > 75 ? bar.how_late : seconds(bar.at_least)),
      saved ? make("text", { class: "quiet", x: x + each / 2, y: 182, "text-anchor": "middle" }, "on time") : null);
  }));
}

function drawPlan() {
  const rows = table("query").rows, last = table("batches").rows.at(-1) || {}, sources = table("watermarks").rows, flow = [];
  const arrow = across() < 600 ? "↓" : "→";
  flow.push(make("div", {}, make("b", {}, "sources"), sources.map((row) => make("p", { dir: "auto" }, row.name))));
  rows.forEach((row, at) => {
    flow.push(make("div", { class: "arrow" }, at === 0 && last.rows_in != null ? `${arrow} ${shown("rows", last.rows_in)} rows` : arrow));
    flow.push(make("div", {}, make("b", {}, `operator ${row.operator}: ${row.engine}`), make("p", { dir: "auto" }, row.why || ""),
      make("p", { class: "hint" }, counted(row.buckets, "bucket") + (last.seconds != null ? `; last batch ${seconds(last.seconds)}` : "")),
      make("details", {}, make("summary", {}, "program"), make("pre", { dir: "auto" }, pretty(row.plan)))));
  });
  flow.push(make("div", { class: "arrow" }, last.firings != null ? `${arrow} ${shown("rows", last.firings)} firings` : arrow), make("div", {}, make("b", {}, "outputs")));
  put("#plan .body", rows.length ? make("div", { class: "flow" }, flow) : make("p", {}, "No batch is committed yet, so no program is known."),
    make("h3", {}, "Last batches"), grid({ ...table("batches"), rows: table("batches").rows.slice().reverse() }, 15), healthy(table("batches")));
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 1); } catch { return text || ""; }
}

function drawChanges() {
  const first = table("query").rows[0], changes = first ? JSON.parse(first.changes || "[]") : [];
  if (!changes.length) return put("#changes .body", make("p", {}, "No start has said what it runs: the query was not started by result.start, or has not begun."));
  put("#changes .body", changes.slice().reverse().map((each) => make("div", {},
    make("h3", {}, `From batch ${each.batch} on, ${each.time.replace("T", " ").replace("+00:00", "")}`),
    each.parts.length ? grid({ columns: ["part", "was", "is", "verdict", "effect"], rows: each.parts.map((part) => ({ ...part, was: worded(part.was), is: worded(part.is) })) }, 50)
      : make("p", {}, "The program as it began, or without a change."))));
}

const worded = (value) => (value === null || value === undefined ? "absent" : typeof value === "string" ? value : JSON.stringify(value));

// --- searching, and what is new -------------------------------------------------------------------

async function search(event) {
  event.preventDefault();
  const text = document.querySelector("#key").value, parts = text.split(",").map((part) => part.trim());
  let found;
  if (all.contents !== undefined) {
    const names = all.contents.columns.slice(2, Math.max(all.contents.columns.indexOf("window_start"), 2));
    const is = (row, name, part) => String(row[name] ?? "NULL") === part;
    const holds = (row) => (names.length ? names.every((name, at) => is(row, name, names.length === 1 ? text.trim() : parts[at])) : parts.every((part) => all.contents.columns.some((name) => is(row, name, part))));
    found = { columns: all.contents.columns, rows: all.contents.rows.filter(holds), complete: true };
  } else {
    const asked = new URLSearchParams(location.search);
    asked.set("query", chosen);
    asked.set("key", text.trim());
    found = await (await fetch("search?" + asked)).json();
  }
  put("#found", make("h3", { dir: "auto" }, `Key ${cut(text, 100)}`),
    found.error ? make("p", {}, found.error) : found.rows.length ? grid(found, 50) : make("p", {}, "Nothing is held of this key."));
}

function draw() {
  const query = all.queries[chosen];
  document.title = `windowpane: ${query.location}`;
  put("#place", query.location);
  put("#live", `batch ${query.batch < 0 ? "none yet" : query.batch}, as of ${instant(query.made * 1000).slice(0, 19)} UTC`);
  const which = document.querySelector("#which");
  which.hidden = all.queries.length < 2;
  if (!which.hidden) {
    const select = which.querySelector("select");
    select.replaceChildren(...all.queries.map((each, at) => make("option", { value: at, selected: at === chosen }, each.location)));
    select.onchange = () => { chosen = +select.value; draw(); };
  }
  for (const part of [drawHealth, drawTimeline, drawState, drawLateness, drawPlan, drawChanges]) part();
}

async function load() {
  all = await (await fetch("data" + location.search)).json();
  draw();
}

function begin() {
  document.querySelector("form").addEventListener("submit", search);
  addEventListener("resize", () => { clearTimeout(begin.soon); begin.soon = setTimeout(() => all && draw(), 150); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "SELECT"].includes(document.activeElement.tagName)) {
      event.preventDefault();
      document.querySelector("#key").focus();
    }
  });
  const inside = document.querySelector("#data");
  if (inside) {
    all = JSON.parse(inside.textContent);
    draw();
    return;
  }
  const events = new EventSource("events" + location.search);
  events.onmessage = load;
  events.onerror = () => put("#live", "The page has lost its server: figures are those of before.");
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
else begin();
