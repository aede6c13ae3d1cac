"use strict";

// The player. A position is a moment of virtual time or, by the clock of
// steps, a number of steps: 1.5 is halfway through the second.
(() => {
  const $ = (id) => document.getElementById(id);
  const film = JSON.parse($("film").textContent);
  const { steps, messages } = film;
  if (messages.length === 0) return;

  const last = steps.length - 1;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const frames = document.querySelectorAll("#stage .frame");
  const ways = document.querySelectorAll("#ways .way");
  const lengths = Array.from(ways, (way) => way.getTotalLength());
  const most = messages.reduce((most, m) => Math.max(most, m.words), 1);
  const edge = 25; // from the middle of a node to a message beside it

  let byTime = film.time > 0; // where nothing takes time, there are steps alone
  let position = 0;
  let step = 0;
  let request = 0; // of the next frame, while it plays
  let before = 0; // when the last frame was drawn

  // Positions.

  const length = () => (byTime ? film.time : steps.length);
  const begin = (k) => (byTime ? steps[k].start : k);
  const stepAt = (p) => {
    if (!byTime) return Math.min(Math.floor(p), last);
    for (let k = last; k > 0; k--) {
      if (steps[k].first < steps[k].last && steps[k].start <= p) return k;
    }
    return 0;
  };
  // per is how far a second moves the position: a step takes two, if the whole
  // then takes no more than a minute.
  const per = () => length() / Math.min(2 * steps.length, 60);

  const go = (p) => {
    position = Math.min(Math.max(p, 0), length());
    step = stepAt(position);
    draw();
  };
  const goStep = (k) => {
    pause();
    if (k > last) return go(length());
    step = Math.max(k, 0);
    position = begin(step);
    draw();
  };
  const next = () => goStep(step + 1);
  const previous = () => goStep(position > begin(step) ? step : step - 1);

  // Playing.

  const playing = () => request !== 0;
  const play = () => {
    if (position >= length()) go(0);
    before = performance.now();
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
    const passed = Math.min(Math.max(now - before, 0), 250) / 1000; // seconds; it does not play unseen
    go(position + passed * per() * Number($("speed").value));
    before = now;
    if (position >= length()) return pause();
    request = requestAnimationFrame(tick);
  };

  // Words.

  const number = (v) => String(Number(v.toPrecision(6)));
  const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const listed = (words) => words.slice(0, 4).join(", ") + (words.length > 4 ? ` and ${words.length - 4} more` : "");
  const headline = (k, done) => {
    const s = steps[k];
    const sum = messages.slice(s.first, s.last).reduce((sum, m) => sum + m.words, 0);
    let text = done ? `Done at time ${number(film.time)}. Step` : "Step";
    text += ` ${k + 1} of ${steps.length}: ${counted(s.last - s.first, "message")}, ${counted(sum, "word")}, time ${number(s.start)} to ${number(s.end)}. `;
    const crowded = s.loads.filter((l) => l.messages > 1);
    if (crowded.length === 0) return text + "No link is asked to carry two messages.";
    return text + `Congested: ${listed(crowded.map((l) => `${film.links[l.link]} (${counted(l.messages, "message")})`))}.`;
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
    const tr = row(film.links[l.link], [l.messages, 0]);
    if (l.messages > 1) tr.className = "red";
    return tr;
  };

  // The stage.

  // phase says where a message is: how much of its way it has gone, and
  // whether it still waits at its sender. It is null before and after.
  const phase = (m, at, k) => {
    if (!byTime) return k === step && at < steps.length ? { gone: at - step, waits: false } : null;
    if (at < m.ready || at >= m.end) return null;
    return at < m.start ? { gone: 0, waits: true } : { gone: (at - m.start) / (m.end - m.start), waits: false };
  };
  // spot is where a message is drawn that has gone so much of its route, link
  // by link. It leaves the sender's rim and ends at the receiver's.
  const spot = (m, gone) => {
    const hops = m.route.length;
    const hop = Math.min(Math.floor(gone * hops), hops - 1);
    const way = m.route[hop];
    const from = hop === 0 ? Math.min(edge, lengths[way] / 2) : 0;
    const to = hop === hops - 1 ? Math.max(lengths[way] - edge, lengths[way] / 2) : lengths[way];
    return ways[way].getPointAtLength(from + (to - from) * (gone * hops - hop));
  };
  const dot = (i) => {
    const dots = $("dots");
    while (dots.childElementCount <= i) dots.append(document.createElementNS(dots.namespaceURI, "circle"));
    return dots.children[i];
  };
  const drawMessages = (at) => {
    const carried = new Array(ways.length).fill(0);
    const states = new Map();
    let n = 0;
    steps.forEach((s, k) => {
      for (let i = s.first; i < s.last; i++) {
        const m = messages[i];
        const ph = phase(m, at, k);
        if (!ph || m.route.length === 0) continue;
        const p = spot(m, ph.gone);
        const c = dot(n++);
        c.setAttribute("cx", p.x.toFixed(1));
        c.setAttribute("cy", p.y.toFixed(1));
        c.setAttribute("r", (4 + 4 * Math.sqrt(m.words / most)).toFixed(1));
        c.setAttribute("class", ph.waits ? "message waiting" : "message");
        states.set(i, ph.waits ? "waiting" : "moving");
        if (!ph.waits) m.route.forEach((way) => carried[way]++);
      }
    });
    const dots = $("dots");
    while (dots.childElementCount > n) dots.lastElementChild.remove();
    ways.forEach((way, i) => way.classList.toggle("busy", carried[i] > 0));
    return { carried, states };
  };

  // One frame more than there are steps says what ranks hold in the end.
  const drawFrame = (done) => {
    const shown = done ? Math.min(step + 1, frames.length - 1) : step;
    frames.forEach((f, k) => f.classList.toggle("now", k === shown));
  };
  const held = $("holds");
  const holdRow = (before, rank) => {
    const after = film.holds[step + 1][rank];
    const tr = row(rank, [before || "–", after || "–"]);
    Array.from(tr.cells).slice(1).forEach((td) => td.classList.add("words"));
    tr.cells[2].classList.toggle("changed", before !== after);
    return tr;
  };
  // reveal scrolls a table to a row, and leaves the page where it is.
  const reveal = (tr) => {
    const box = tr.closest(".scroll");
    const head = tr.closest("table").tHead.offsetHeight;
    if (tr.offsetTop < box.scrollTop + head) box.scrollTop = tr.offsetTop - head;
    else if (tr.offsetTop + tr.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = tr.offsetTop + tr.offsetHeight - box.clientHeight;
  };
  let drawn = -1; // the step whose tables stand
  const drawStep = () => {
    if (drawn === step) return;
    drawn = step;
    const s = steps[step];
    document.querySelectorAll("[data-step]").forEach((e) => {
      if (Number(e.dataset.step) === step) e.setAttribute("aria-current", "step");
      else e.removeAttribute("aria-current");
    });
    reveal($("steps").tBodies[0].rows[step]);
    if (held) held.tBodies[0].replaceChildren(...film.holds[step].map(holdRow));
    $("messages").tBodies[0].replaceChildren(...messages.slice(s.first, s.last).map(messageRow));
    $("loads").tBodies[0].replaceChildren(...s.loads.map(loadRow));
    document.querySelectorAll(".which").forEach((e) => (e.textContent = `step ${step + 1}`));
  };

  // drawStates says in the tables what messages and links do at the moment.
  const drawStates = (states, carried, over) => {
    const { first, last, loads } = steps[step];
    Array.from($("messages").tBodies[0].rows, (tr, i) => {
      const m = messages[first + i];
      tr.className = states.get(first + i) || (over(m) ? "done" : "");
      tr.classList.toggle("critical", m.critical);
    });
    const others = Array.from(states.keys()).filter((i) => i < first || i >= last);
    const words = others.map((i) => `${messages[i].from}→${messages[i].to} ${states.get(i) === "waiting" ? "waits" : "is on its way"}`);
    $("others").textContent = words.length > 0 ? `Of other steps: ${listed(words)}.` : "";
    Array.from($("loads").tBodies[0].rows, (tr, i) => (tr.cells[2].textContent = carried[loads[i].link]));
  };

  const draw = () => {
    const done = position >= length();
    const at = still.matches && playing() && !done ? begin(step) : position; // who wants no motion sees steps
    drawStep();
    drawFrame(done);
    const { states, carried } = drawMessages(at);
    drawStates(states, carried, (m) => (byTime ? at >= m.end : done));

    const text = headline(step, done);
    if ($("headline").textContent !== text) $("headline").textContent = text; // announced when it changes
    const clock = byTime ? `time ${number(at)} of ${number(film.time)} time units` : `step ${step + 1} of ${steps.length}`;
    $("clock").textContent = clock;
    $("scrub").value = at;
    $("scrub").setAttribute("aria-valuetext", `step ${step + 1} of ${steps.length}, ${clock}`);
  };

  // What the reader does.

  const setClock = (time) => {
    const was = step;
    byTime = time;
    $("scrub").max = length();
    if (position > 0) goStep(was);
    else go(0);
  };
  $("play").addEventListener("click", toggle);
  $("next").addEventListener("click", next);
  $("previous").addEventListener("click", previous);
  $("scrub").addEventListener("input", () => {
    pause();
    go(Number($("scrub").value));
  });
  document.querySelectorAll("input[name=clock]").forEach((radio) => {
    radio.checked = (radio.value === "time") === byTime;
    radio.disabled = film.time === 0;
    radio.addEventListener("change", () => setClock(radio.value === "time"));
  });
  document.addEventListener("click", (e) => {
    const chosen = e.target.closest("[data-step]");
    if (!chosen) return;
    e.preventDefault();
    goStep(Number(chosen.dataset.step));
    $("played").scrollIntoView({ block: "start" });
  });

  const keys = {
    " ": toggle,
    ArrowRight: next,
    ArrowLeft: previous,
    Home: () => goStep(0),
    End: () => goStep(last + 1),
  };
  // What has a use of its own for a key keeps it.
  const keeps = (target, key) => target.closest("select, input[type=radio], .scroll") || (key === " " && target.closest("button, a"));
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || !(e.key in keys) || keeps(e.target, e.key)) return;
    e.preventDefault();
    keys[e.key]();
  });

  $("controls").hidden = $("detail").hidden = false;
  $("scrub").max = length();
  draw();
})();
