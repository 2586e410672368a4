/* Fills the page. */

const VIEWS = { run: viewRun, memory: viewMemory, sweep: viewSweep, compare: viewCompare, collective: viewCollective, schedule: viewSchedule, validate: viewValidate, train: viewTrain, capture: viewCapture };

(async () => {
  const page = document.getElementById("page"), result = part("result");
  page.replaceChildren(el("h1", null, about.title || `lockstep ${about.kind}`), about.subtitle ? el("p", { class: "quiet lines" }, about.subtitle) : "",
    el("div", { class: "command" }, about.command), el("nav"));
  document.body.append(tipBox);
  try {
    const shown = [(await (VIEWS[about.kind] || viewOther)(result)), section("Assumptions", assumptions(result))].flat(3).filter((x) => x);
    page.append(...shown);
    page.querySelector("nav").append(...shown.filter((s) => s.tagName === "SECTION").map((s) => el("a", { href: "#" + s.id }, s.firstChild.textContent)));
    document.documentElement.dataset.ready = "1";
  } catch (error) {
    page.append(el("p", { class: "bad" }, `This browser cannot show all of it: ${error.message}`));
    console.error(error);
  }
  if (about.notes.length) page.querySelector("nav").after(el("ul", { class: "notes" }, about.notes.map((n) => el("li", null, n))));
  page.append(el("p", { class: "quiet" }, `Written by lockstep ${about.version}. All numbers are in this file, which loads nothing.`));
})();
