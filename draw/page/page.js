"use strict";

// The player. A position is a virtual time or, by the clock of steps, a number
// of steps: 1.5 is halfway through the second step.
(() => {
  const $ = (id) => document.getElementById(id);
  const animation = JSON.parse($("animation").textContent);
  const { steps, messages } = animation;
  if (messages.length === 0) return;

  const last = steps.length - 1;
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const frames = document.querySelectorAll("#figure .frame");
  const linkPaths = document.querySelectorAll("#link-paths .link-path");
  const lengths = Array.from(linkPaths, (path) => path.getTotalLength());
  const maxWords = messages.reduce((max, m) => Math.max(max, m.words), 1);
  const nodeClearance = 25; // from the center of a node to a message beside it

  let byTime = animation.time > 0; // else the clock of steps is the only one
  let position = 0;
  let step = 0;
  let request = 0; // the animation frame request while playing, else 0
  let lastTick = 0; // when the last frame was drawn, in ms

  // Positions.

  const length = () => (byTime ? animation.time : steps.length);
  const startOf = (k) => (byTime ? steps[k].start : k);
  const stepAt = (p) => {
    if (!byTime) return Math.min(Math.floor(p), last);
    for (let k = last; k > 0; k--) {
      if (steps[k].first < steps[k].last && steps[k].start <= p) return k;
    }
    return 0;
  };
  // positionsPerSecond returns how far one second moves the position: 2 s per
  // step, and at most 60 s for all steps.
  const positionsPerSecond = () => length() / Math.min(2 * steps.length, 60);

  const seek = (p) => {
    position = Math.min(Math.max(p, 0), length());
    step = stepAt(position);
    draw();
  };
  const goStep = (k) => {
    pause();
    if (k > last) return seek(length());
    step = Math.max(k, 0);
    position = startOf(step);
    draw();
  };
  const next = () => goStep(step + 1);
  const previous = () => goStep(position > startOf(step) ? step : step - 1);

  // Playing.

  const playing = () => request !== 0;
  const play = () => {
    if (position >= length()) seek(0);
    lastTick = performance.now();
    request = requestAnimationFrame(tick);
    $("play").textContent = "Pause";
  };
  const pause = () => {
    cancelAnimationFrame(request);
    request = 0;
    $("play").textContent = "Play";
  };
  const toggle = () => (playing() ? pause() : play());
  const tick = (now) => {
    const elapsed = Math.min(Math.max(now - lastTick, 0), 250) / 1000; // seconds; a hidden page does not advance
    seek(position + elapsed * positionsPerSecond() * Number($("speed").value));
    lastTick = now;
    if (position >= length()) return pause();
    request = requestAnimationFrame(tick);
  };

  // Text.

  const number = (v) => String(Number(v.toPrecision(6)));
  const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const listed = (items) => items.slice(0, 4).join(", ") + (items.length > 4 ? ` and ${items.length - 4} more` : "");
  const headline = (k, done) => {
    const s = steps[k];
    const sum = messages.slice(s.first, s.last).reduce((sum, m) => sum + m.words, 0);
    let text = done ? `Done at time ${number(animation.time)}. Step` : "Step";
    text += ` ${k + 1} of ${steps.length}: ${plural(s.last - s.first, "message")}, ${plural(sum, "word")}, time ${number(s.start)} to ${number(s.end)}. `;
    const congested = s.loads.filter((l) => l.messages > 1);
    if (congested.length === 0) return text + "No link is asked to carry two messages.";
    return text + `Congested: ${listed(congested.map((l) => `${animation.links[l.link]} (${plural(l.messages, "message")})`))}.`;
  };

  // Tables of the step.

  const row = (head, cells) => {
    const tr = document.createElement("tr");
    const th = document.createElement("th");
    th.scope = "row";
    th.textContent = head;
    tr.append(th, ...cells.map((text) => {
      const td = document.createElement("td");
      td.textContent = text;
      return td;
    }));
    return tr;
  };
  const messageRow = (m) => row(`${m.from}→${m.to}`, [m.words, m.route.length, number(m.start), number(m.end), number(m.start - m.ready)]);
  const loadRow = (l) => {
    const tr = row(animation.links[l.link], [l.messages, 0]);
    if (l.messages > 1) tr.className = "red";
    return tr;
  };

  // The figure.

  // phase returns how much of its route a message has covered, from 0 to 1, and
  // whether it still waits at its sender; null before it is ready and after it
  // has arrived.
  const phase = (m, at, k) => {
    if (!byTime) return k === step && at < steps.length ? { covered: at - step, waits: false } : null;
    if (at < m.ready || at >= m.end) return null;
    return at < m.start ? { covered: 0, waits: true } : { covered: (at - m.start) / (m.end - m.start), waits: false };
  };
  // pointOn returns where a message is drawn after it has covered that much of
  // its route. All links of a route count the same. The route begins and ends at
  // the circles of the sender and the receiver.
  const pointOn = (m, covered) => {
    const hops = m.route.length;
    const hop = Math.min(Math.floor(covered * hops), hops - 1);
    const link = m.route[hop];
    const from = hop === 0 ? Math.min(nodeClearance, lengths[link] / 2) : 0;
    const to = hop === hops - 1 ? Math.max(lengths[link] - nodeClearance, lengths[link] / 2) : lengths[link];
    return linkPaths[link].getPointAtLength(from + (to - from) * (covered * hops - hop));
  };
  const dot = (i) => {
    const dots = $("dots");
    while (dots.childElementCount <= i) dots.append(document.createElementNS(dots.namespaceURI, "circle"));
    return dots.children[i];
  };
  const drawMessages = (at) => {
    const carried = new Array(linkPaths.length).fill(0);
    const states = new Map();
    let n = 0;
    steps.forEach((s, k) => {
      for (let i = s.first; i < s.last; i++) {
        const m = messages[i];
        const ph = phase(m, at, k);
        if (!ph || m.route.length === 0) continue;
        const p = pointOn(m, ph.covered);
        const c = dot(n++);
        c.setAttribute("cx", p.x.toFixed(1));
        c.setAttribute("cy", p.y.toFixed(1));
        c.setAttribute("r", (4 + 4 * Math.sqrt(m.words / maxWords)).toFixed(1));
        c.setAttribute("class", ph.waits ? "message waiting" : "message");
        states.set(i, ph.waits ? "waiting" : "moving");
        if (!ph.waits) m.route.forEach((link) => carried[link]++);
      }
    });
    const dots = $("dots");
    while (dots.childElementCount > n) dots.lastElementChild.remove();
    linkPaths.forEach((path, i) => path.classList.toggle("busy", carried[i] > 0));
    return { carried, states };
  };

  // After the frames of the steps, one more may show the contents at the end.
  const drawFrame = (done) => {
    const shown = done ? Math.min(step + 1, frames.length - 1) : step;
    frames.forEach((f, k) => f.classList.toggle("current", k === shown));
  };
  const contentsTable = $("contents");
  const contentsRow = (before, rank) => {
    const after = animation.contents[step + 1][rank];
    const tr = row(rank, [before || "–", after || "–"]);
    Array.from(tr.cells).slice(1).forEach((td) => td.classList.add("text"));
    tr.cells[2].classList.toggle("changed", before !== after);
    return tr;
  };
  // reveal scrolls a table to a row without scrolling the page.
  const reveal = (tr) => {
    const pane = tr.closest(".scroll");
    const head = tr.closest("table").tHead.offsetHeight;
    if (tr.offsetTop < pane.scrollTop + head) pane.scrollTop = tr.offsetTop - head;
    else if (tr.offsetTop + tr.offsetHeight > pane.scrollTop + pane.clientHeight) pane.scrollTop = tr.offsetTop + tr.offsetHeight - pane.clientHeight;
  };
  let drawn = -1; // the step that the tables show
  const drawStep = () => {
    if (drawn === step) return;
    drawn = step;
    const s = steps[step];
    document.querySelectorAll("[data-step]").forEach((e) => {
      if (Number(e.dataset.step) === step) e.setAttribute("aria-current", "step");
      else e.removeAttribute("aria-current");
    });
    reveal($("steps").tBodies[0].rows[step]);
    if (contentsTable) contentsTable.tBodies[0].replaceChildren(...animation.contents[step].map(contentsRow));
    $("messages").tBodies[0].replaceChildren(...messages.slice(s.first, s.last).map(messageRow));
    $("loads").tBodies[0].replaceChildren(...s.loads.map(loadRow));
    document.querySelectorAll(".step-name").forEach((e) => (e.textContent = `step ${step + 1}`));
  };

  // drawStates marks messages and links in the tables with their current state.
  const drawStates = (states, carried, arrived) => {
    const { first, last, loads } = steps[step];
    Array.from($("messages").tBodies[0].rows, (tr, i) => {
      const m = messages[first + i];
      tr.className = states.get(first + i) || (arrived(m) ? "done" : "");
      tr.classList.toggle("critical", m.critical);
    });
    const others = Array.from(states.keys()).filter((i) => i < first || i >= last);
    const texts = others.map((i) => `${messages[i].from}→${messages[i].to} ${states.get(i) === "waiting" ? "waits" : "is on its way"}`);
    $("others").textContent = texts.length > 0 ? `Of other steps: ${listed(texts)}.` : "";
    Array.from($("loads").tBodies[0].rows, (tr, i) => (tr.cells[2].textContent = carried[loads[i].link]));
  };

  const draw = () => {
    const done = position >= length();
    const at = reducedMotion.matches && playing() && !done ? startOf(step) : position; // with reduced motion only whole steps are shown
    drawStep();
    drawFrame(done);
    const { states, carried } = drawMessages(at);
    drawStates(states, carried, (m) => (byTime ? at >= m.end : done));

    const text = headline(step, done);
    if ($("headline").textContent !== text) $("headline").textContent = text; // announced when it changes
    const clock = byTime ? `time ${number(at)} of ${number(animation.time)} time units` : `step ${step + 1} of ${steps.length}`;
    $("clock").textContent = clock;
    $("scrub").value = at;
    $("scrub").setAttribute("aria-valuetext", `step ${step + 1} of ${steps.length}, ${clock}`);
  };

  // Controls.

  const setClock = (time) => {
    const was = step;
    byTime = time;
    $("scrub").max = length();
    if (position > 0) goStep(was);
    else seek(0);
  };
  $("play").addEventListener("click", toggle);
  $("next").addEventListener("click", next);
  $("previous").addEventListener("click", previous);
  $("scrub").addEventListener("input", () => {
    pause();
    seek(Number($("scrub").value));
  });
  document.querySelectorAll("input[name=clock]").forEach((radio) => {
    radio.checked = (radio.value === "time") === byTime;
    radio.disabled = animation.time === 0;
    radio.addEventListener("change", () => setClock(radio.value === "time"));
  });
  document.addEventListener("click", (e) => {
    const target = e.target.closest("[data-step]");
    if (!target) return;
    e.preventDefault();
    goStep(Number(target.dataset.step));
    $("played").scrollIntoView({ block: "start" });
  });

  const keys = {
    " ": toggle,
    ArrowRight: next,
    ArrowLeft: previous,
    Home: () => goStep(0),
    End: () => goStep(last + 1),
  };
  // usesKey reports whether the focused element handles the key itself.
  const usesKey = (target, key) => target.closest("select, input[type=radio], .scroll") || (key === " " && target.closest("button, a"));
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || !(e.key in keys) || usesKey(e.target, e.key)) return;
    e.preventDefault();
    keys[e.key]();
  });

  $("controls").hidden = $("detail").hidden = false;
  $("scrub").max = length();
  draw();
})();
