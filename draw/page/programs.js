"use strict";

// The page of programs: it shows how far each rank has come after each round.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const steps = Array.from(document.querySelectorAll("rect.step"));
  const arrows = Array.from(document.querySelectorAll("g.arrow"));
  const headline = document.getElementById("headline");
  const last = data.rounds.length - 1;
  let round = last;

  // The step of an end that does not exist is -1: it has not begun, and never does.
  const begun = (done, rank, step) => step >= 0 && done[rank] >= step;

  const show = (to) => {
    round = Math.min(Math.max(to, 0), last);
    const done = data.rounds[round];
    for (const rect of steps) {
      const rank = Number(rect.dataset.rank), step = Number(rect.dataset.step);
      rect.classList.toggle("ended", done[rank] > step);
      rect.classList.toggle("ahead", done[rank] < step);
    }
    for (const arrow of arrows) {
      const { from, sent, to: receiver, received } = arrow.dataset;
      arrow.classList.toggle("pending", !begun(done, Number(from), Number(sent)) && !begun(done, Number(receiver), Number(received)));
    }
    const before = round === 0 ? done : data.rounds[round - 1];
    const ended = done.map((n, rank) => (n > before[rank] ? `rank ${rank} has ended step ${n}` : "")).filter(Boolean);
    let text = round === 0 ? "all begin" : ended.join(", ");
    if (round === last) {
      text += (text ? "; " : "") + data.end;
    }
    headline.textContent = `Round ${round} of ${last}: ${text}`;
  };

  const move = { first: () => show(0), back: () => show(round - 1), forward: () => show(round + 1), last: () => show(last) };
  for (const [id, go] of Object.entries(move)) {
    document.getElementById(id).addEventListener("click", go);
  }
  document.addEventListener("keydown", (event) => {
    const go = { ArrowLeft: move.back, ArrowRight: move.forward, Home: move.first, End: move.last }[event.key];
    if (go && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      go();
    }
  });
  show(last);
})();
