// The editor of statements: completes schemas, tables, columns and words of SQL, and runs by Ctrl+Enter.
// Completion never changes what was typed by itself: Enter takes a suggestion only once one is chosen.

const MOST = 60;
const WORDS = (
  "SELECT FROM WHERE GROUP BY ORDER BY HAVING LIMIT JOIN LEFT JOIN CROSS JOIN UNION ALL DISTINCT CASE WHEN THEN ELSE END " +
  "BETWEEN LIKE IS NULL IS NOT NULL EXISTS WITH DESCRIBE EXPLAIN SHOW VIEWS IN serve COUNT SUM AVG MIN MAX CAST " +
  "DATE_TRUNC COALESCE INTERVAL OVER PARTITION BY DESC"
).match(/(GROUP|ORDER|PARTITION) BY|(LEFT|CROSS) JOIN|UNION ALL|IS (NOT )?NULL|SHOW VIEWS IN serve|\w+/g);
const PLACE = /\b(from|join|describe|in)\s+(?:[\w`.]+\s*,\s*)*$/i;
const NAMED = /\b(?:from|join)\s+([\w`.]+)(?:\s+(?:as\s+)?(\w+))?/gi;
const NO_ALIAS = /^(where|group|order|join|left|right|cross|inner|full|on|limit|having|union|using)$/i;
const RELEASE = /^release_(\d+)$/;

const bare = (name) => name.replaceAll("`", "").toLowerCase();
const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : "`" + name.replaceAll("`", "``") + "`");

// Every table that the statement names, by what its columns may be prefixed with.
function named(text, tables) {
  const found = new Map();
  for (const [, place, alias] of text.matchAll(NAMED)) {
    const name = bare(place.split(".").at(-1));
    const table = tables.find((one) => one.name.toLowerCase() === name);
    if (!table) continue;
    found.set(name, table);
    if (alias && !NO_ALIAS.test(alias)) found.set(alias.toLowerCase(), table);
  }
  return found;
}

// What may stand at this place of the text: {from, options: [{text, label, about}]}, the likeliest first.
export function suggestions(text, at, names) {
  const typed = /[\w`.]*$/.exec(text.slice(0, at))[0];
  const cut = typed.lastIndexOf(".") + 1;
  const owner = bare(typed.slice(0, cut).replace(/\.$/, ""));
  const start = bare(typed.slice(cut));
  const tables = names.tables;
  const columns = (table) =>
    table.columns.map((one) => ({ text: quoted(one.name), label: one.name, about: one.type + ", " + table.name }));
  const places = (schema) =>
    tables.map((one) => ({ text: schema + quoted(one.name), label: schema + one.name, about: "table" }));
  const known = named(text, tables);
  let all = [];
  if (cut) {
    const table = known.get(owner.split(".").at(-1)) ?? tables.find((one) => one.name.toLowerCase() === owner.split(".").at(-1));
    if (names.schemas.includes(owner)) all = places("");
    else if (table) all = columns(table);
  } else {
    const schemas = names.schemas.map((one) => ({ text: one + ".", label: one + ".", about: "schema" }));
    const words = WORDS.map((one) => ({ text: one, label: one, about: "SQL" }));
    const inPlace = PLACE.test(text.slice(0, at - typed.length));
    if (inPlace) all = [...places("serve."), ...schemas];
    else all = [...[...new Set(known.values())].flatMap(columns), ...words, ...places("serve."), ...schemas];
  }
  const seen = new Set();
  const fits = (test) =>
    all.filter((one) => {
      const label = one.label.toLowerCase();
      if (seen.has(label) || !test(label)) return false;
      seen.add(label);
      return true;
    });
  const begins = fits((label) => label.startsWith(start) || label.startsWith("serve." + start));
  const holds = start.length > 1 ? fits((label) => label.includes(start)) : [];
  const options = [...begins, ...holds].filter((one) => one.text.toLowerCase() !== start);
  return { from: at - typed.length + cut, options: options.slice(0, MOST) };
}

function editing(area) {
  const list = document.getElementById(area.dataset.completions);
  const said = document.getElementById(area.dataset.said);
  let names = null;
  let loading = null;
  let shown = { from: 0, options: [] };
  let chosen = -1;
  let taking = false;

  async function fetched() {
    try {
      const answer = await fetch("/part/names", { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(20000) });
      if (answer.ok) {
        names = await answer.json();
        moments();
      } else said.textContent = "Names are not completed: " + (answer.status === 401 ? "sign in again" : (await answer.json()).what);
    } catch (error) {
      loading = null; // asked for again with the next key
    }
  }

  function load() {
    loading ??= fetched();
    return loading;
  }

  function moments() {
    const releases = names.schemas.map((one) => RELEASE.exec(one)?.[1]).filter(Boolean);
    const known = document.getElementById("moments");
    known.replaceChildren(...releases.sort((a, b) => b - a).map((one) => new Option("", "release:" + one)));
  }

  function close() {
    list.hidden = true;
    chosen = -1;
    area.removeAttribute("aria-activedescendant");
    list.replaceChildren();
  }

  function choose(number) {
    chosen = (number + shown.options.length) % shown.options.length;
    [...list.children].forEach((one, i) => one.setAttribute("aria-selected", i === chosen));
    list.children[chosen].scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", list.children[chosen].id);
  }

  function take(number) {
    area.focus();
    area.setSelectionRange(shown.from, area.selectionStart);
    const text = shown.options[number].text;
    taking = !text.endsWith("."); // behind a schema its tables follow at once
    // by this alone what was typed can be taken back with Ctrl+Z
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, shown.from, area.selectionEnd, "end");
    if (taking) close();
    taking = false;
  }

  async function open(isAsked) {
    const typed = area.value;
    await load();
    if (!names || document.activeElement !== area || area.value !== typed) return;
    shown = suggestions(area.value, area.selectionStart, names);
    close();
    if (!shown.options.length) {
      if (isAsked) said.textContent = "Nothing to complete here.";
      return;
    }
    list.replaceChildren(
      ...shown.options.map((one, i) => {
        const made = document.createElement("li");
        made.id = list.id + "-" + i;
        made.setAttribute("role", "option");
        made.setAttribute("aria-selected", "false");
        made.append(one.label);
        const about = document.createElement("small");
        about.textContent = one.about;
        made.append(" ", about);
        made.addEventListener("mousedown", (event) => {
          event.preventDefault(); // the editor keeps the focus
          take(i);
        });
        return made;
      }),
    );
    list.hidden = false;
    said.textContent = shown.options.length + " suggestions.";
    if (isAsked) choose(0);
  }

  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      area.form.requestSubmit();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open(true);
    } else if (!list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      if (event.key === "ArrowDown") choose(chosen + 1);
      else choose(chosen < 0 ? -1 : chosen - 1);
    } else if (!list.hidden && event.key === "Enter" && chosen >= 0 && !event.shiftKey) {
      event.preventDefault();
      take(chosen);
    } else if (!list.hidden && event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
  area.addEventListener("input", (event) => {
    if (!taking && event.inputType?.startsWith("insert") && /[\w.`]$/.test(area.value.slice(0, area.selectionStart))) open(false);
    else close();
  });
  area.addEventListener("blur", close);
  area.addEventListener("focus", load);
  area.addEventListener("click", close);
  if (document.activeElement === area) load();
}

if (typeof document !== "undefined") {
  for (const area of document.querySelectorAll("textarea[data-completions]")) editing(area);
}
