// What a page does by itself: it follows the stream of events, counts times up and down, and draws the chart of a pace.
// Every page can be read and every form can be sent without it. It writes text and never markup.
"use strict";

(() => {
  // Times, in the words of the server.
  const span = (ms) => {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 100) return `${seconds} s`;
    if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} days`;
  };

  const left = (ms) => {
    const seconds = Math.max(0, Math.ceil(ms / 1000));
    if (seconds >= 3600) return span(ms);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };

  const tick = () => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-at]")) {
      const at = Number(time.dataset.at);
      const text = at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
    for (const time of document.querySelectorAll("time[data-due]")) {
      const due = Number(time.dataset.due);
      const text = due > now ? `in ${span(due - now)}` : "due now";
      if (time.textContent !== text) time.textContent = text;
    }
    for (const time of document.querySelectorAll("time[data-until]")) {
      const until = Number(time.dataset.until);
      const text = until > now ? `${left(until - now)} left` : "time is over";
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(tick, 1000);

  // The stream of events: something has changed, so the page asks what. At most once a second, and only what is marked
  // as live is replaced, so that nobody loses what they type.
  const state = document.getElementById("live-state");
  const say = (text) => {
    if (state && state.textContent !== text) state.textContent = text;
  };
  const PAUSE_MS = 1000;
  let refreshed = 0;
  let planned = 0;
  let pressed = false;
  let missed = false;
  const refresh = () => {
    planned = 0;
    if (pressed) {
      missed = true;
      return;
    }
    refreshed = Date.now();
    document.body.dispatchEvent(new CustomEvent("gleaner:change"));
  };
  const changed = () => {
    if (planned || pressed || document.hidden) {
      missed = true;
      return;
    }
    missed = false;
    planned = setTimeout(refresh, Math.max(0, refreshed + PAUSE_MS - Date.now()));
  };
  // What is pressed is not replaced before it is let go: a browser would take it for no click at all.
  addEventListener("pointerdown", (event) => (pressed = event.button === 0), true);
  for (const end of ["pointerup", "pointercancel", "blur"]) {
    addEventListener(end, () => {
      pressed = false;
      // After the click that this may be the end of.
      if (missed) setTimeout(changed, 0);
    }, true);
  }

  let source = null;
  const connect = () => {
    if (source || document.hidden) return;
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", () => say("Live"));
    source.addEventListener("change", changed);
    // What has changed since this page was made, and before anybody listened, nobody would tell.
    source.addEventListener("hello", changed);
    source.addEventListener("error", () => say("Not live: the service does not answer"));
  };
  const disconnect = () => {
    if (source) source.close();
    source = null;
  };
  document.addEventListener("visibilitychange", () => {
    // A tab that nobody looks at holds no stream.
    if (document.hidden) disconnect();
    else {
      connect();
      changed();
    }
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  connect();

  // What somebody unfolded stays unfolded, and the one with the keyboard stays where it was.
  let unfolded = [];
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    // The answer to a form comes once, and is not asked for again.
    if (pressed && event.detail.requestConfig.verb === "get") {
      event.detail.shouldSwap = false;
      missed = true;
      return;
    }
    const old = event.detail.target;
    unfolded = old ? [...old.querySelectorAll("details[open][id]")].map((details) => details.id) : [];
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    for (const id of unfolded) {
      const details = document.getElementById(id);
      if (details) details.open = true;
    }
    tick();
  });

  // A form is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  // The chart.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const options = (width) => {
    const line = colour("--line");
    const quiet = colour("--quiet");
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const clock = (seconds, span) => new Date(seconds * 1000).toLocaleTimeString("en-GB", span > 600 ? { hour: "2-digit", minute: "2-digit" } : undefined);
    const times = (plot, splits) => splits.map((at) => clock(at, plot.scales.x.max - plot.scales.x.min));
    const number = (value) => (value == null ? "–" : value >= 10 ? value.toFixed(0) : value.toFixed(2));
    return {
      width,
      height: 240,
      scales: { x: { time: true }, perMinute: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] }, seconds: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis, values: times, space: 80 },
        { ...axis, scale: "perMinute", size: 56, label: "requests a minute", labelSize: 20, stroke: quiet },
        { ...axis, scale: "seconds", side: 1, size: 56, label: "wait, seconds", labelSize: 20, grid: { show: false } },
      ],
      series: [
        { value: (_, at) => (at == null ? "–" : new Date(at * 1000).toLocaleString("en-GB")) },
        { label: "rate", scale: "perMinute", stroke: colour("--chart-rate"), width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { size: 5 }, value: (_, value) => (value == null ? "–" : `${number(value)}/min`) },
        { label: "ceiling", scale: "perMinute", stroke: colour("--chart-ceiling"), width: 1.5, dash: [6, 4], paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (_, value) => (value == null ? "–" : `${number(value)}/min`) },
        { label: "slowed down by the service", scale: "perMinute", stroke: colour("--chart-refused"), paths: () => null, points: { show: true, size: 9, width: 2, fill: colour("--card") }, value: (_, value) => (value == null ? "–" : `to ${number(value)}/min`) },
        { label: "wait between requests", scale: "seconds", stroke: colour("--chart-wait"), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (_, value) => (value == null ? "–" : `${value.toFixed(2)} s`) },
      ],
    };
  };

  const chart = (box) => {
    let plot = null;
    const draw = async () => {
      let answer;
      try {
        answer = await fetch(box.dataset.chart, { headers: { accept: "application/json" } });
      } catch {
        return;
      }
      if (!answer.ok) return;
      const data = await answer.json();
      if (data.at.length === 0) return;
      const columns = [data.at, data.rate, data.ceiling, data.backoff, data.wait];
      if (plot) plot.setData(columns);
      else plot = new uPlot(options(box.clientWidth), columns, box);
      box.dataset.points = String(data.at.length);
    };
    const again = () => {
      if (plot) plot.destroy();
      plot = null;
      draw();
    };
    draw();
    document.body.addEventListener("gleaner:change", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new ResizeObserver(() => {
      if (plot && Math.abs(plot.width - box.clientWidth) > 1) plot.setSize({ width: box.clientWidth, height: 240 });
    }).observe(box);
  };
  if (typeof uPlot === "function") for (const box of document.querySelectorAll("[data-chart]")) chart(box);
})();
