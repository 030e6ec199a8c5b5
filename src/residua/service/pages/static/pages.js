// What spares a reload: parts of pages that come later, forms answered in place, fields that apply.
import { budgetChart, playChart } from "./curves.js";

const PART = { "X-Residua-Part": "1" };
document.documentElement.classList.add("js");

async function part(address, options = {}) {
  const answer = await fetch(address, { credentials: "same-origin", redirect: "manual", ...options, headers: { ...PART, ...options.headers } });
  if (answer.type === "opaqueredirect") { location.assign("/login"); return ""; }
  return answer.text();
}

function put(where, html) {
  where.innerHTML = html;
  where.removeAttribute("aria-busy");
  draw(where);
}

// Of a form's kinds, only the chosen one's fields.
function kinds(select) {
  const form = select.form;
  const show = () => {
    for (const set of form.querySelectorAll("fieldset.kind")) set.hidden = set.disabled = !set.dataset.kind.split(" ").includes(select.value);
  };
  select.addEventListener("change", show);
  show();
}

// A form whose answer is put into the page.
function answered(form) {
  const where = document.getElementById(form.dataset.into);
  let latest = 0;
  const ask = async () => {
    const mine = ++latest;
    const fields = new URLSearchParams(new FormData(form));
    const get = form.method === "get";
    where.setAttribute("aria-busy", "true");
    try {
      const html = await part(get ? `${form.action}?${fields}` : form.action, get ? {} : { method: "POST", body: fields });
      if (mine === latest) put(where, html);
      if (get) history.replaceState(null, "", `?${fields}`);
    } catch {
      where.removeAttribute("aria-busy");
      form.submit();
    }
  };
  form.addEventListener("submit", (event) => {
    // Spending loads the page anew: much of it changes.
    if (event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    ask();
  });
  if ("live" in form.dataset) {
    form.addEventListener("change", () => ask());
    for (const link of form.querySelectorAll("[data-moves]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const moves = link.dataset.moves.split(" ");
        ["first", "low", "high"].forEach((name, i) => { form.elements[name].value = moves[i]; });
        ask();
      });
    }
  }
}

async function poll(where) {
  while (where.querySelector("[data-running]")) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const html = await part(where.dataset.poll);
    if (html !== where.innerHTML) put(where, html);
  }
}

function draw(within) {
  // On a phone the outcome is below: what it says is also at hand beside the choices.
  const verdict = within.querySelector(".verdict:not(.tally)"), tally = document.querySelector(".tally");
  if (verdict && tally) { tally.textContent = verdict.dataset.short; tally.className = `${verdict.className} tally`; }
  for (const each of within.querySelectorAll("[data-curves]")) playChart(each, JSON.parse(each.dataset.curves));
}

for (const select of document.querySelectorAll("[data-kinds]")) kinds(select);
for (const form of document.querySelectorAll("form[data-into]")) answered(form);
for (const each of document.querySelectorAll("[data-poll]")) poll(each);
document.querySelector("[data-focus]")?.focus();
draw(document);
for (const each of document.querySelectorAll("[data-part]")) part(each.dataset.part).then((html) => put(each, html));
for (const each of document.querySelectorAll("[data-curves-from]")) {
  fetch(each.dataset.curvesFrom, { headers: PART })
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.status))))
    .then((found) => budgetChart(each, found))
    .catch(() => { each.textContent = "The curves could not be worked out."; });
}
