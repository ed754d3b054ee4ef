// Keeps the page up to date: ages grow by themselves, and what changed is fetched anew and put in place.
"use strict";

const EVERY = 2000;
const AT_LEAST_EVERY = 15000;
const SECOND = 1000;
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

const banner = document.getElementById("banner");
const pulse = document.getElementById("pulse");
const written = new Map(parts(document).map((part) => [part.id, part.outerHTML]));
// The database's clock is what counts: ages grow by this one.
const ahead = Date.now() - (Date.parse(document.body.dataset.now) || Date.now());
let mark = document.body.dataset.mark;
let renewed = Date.now();

function parts(page) {
  return [...page.querySelectorAll("[data-live]")];
}

function length(seconds) {
  const found = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count > 0 && found.length < 2) found.push(`${count} ${unit}`);
  }
  return found.join(" ") || "0 s";
}

function grow() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const age = (Date.now() - ahead - Date.parse(time.dateTime)) / 1000;
    if (age >= 0) time.textContent = length(Math.floor(age));
  }
}

function say(sentence) {
  banner.textContent = sentence;
  banner.hidden = sentence === "";
  pulse.className = sentence === "" ? "pulse live" : "pulse lost";
  pulse.querySelector("span").textContent = sentence === "" ? "live" : "waiting";
}

// What somebody opened or stands on stays so.
function put(place, fresh) {
  const opened = [...place.querySelectorAll("details[open]")].map((each) => each.id);
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const scrolled = [...place.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  place.replaceWith(fresh);
  for (const each of fresh.querySelectorAll("details")) each.open = opened.includes(each.id);
  fresh.querySelectorAll(".scroll").forEach((each, number) => { each.scrollLeft = scrolled[number] || 0; });
  if (focused) [...fresh.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
}

async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = new Map(parts(page).map((part) => [part.id, part]));
  if ([...fresh.keys()].join() !== [...written.keys()].join()) {
    location.reload();
    return;
  }
  for (const [id, part] of fresh) {
    if (part.outerHTML === written.get(id)) continue;
    written.set(id, part.outerHTML);
    put(document.getElementById(id), document.adoptNode(part));
  }
  mark = page.body.dataset.mark;
  renewed = Date.now();
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/state", { headers: { Accept: "application/json" } });
    const state = await answer.json();
    say(state.sentence || "");
    if (answer.ok && (state.mark !== mark || Date.now() - renewed > AT_LEAST_EVERY)) await renew();
  } catch {
    say("The console does not answer. This page comes back by itself.");
  }
}

async function keep() {
  await look();
  grow();
  setTimeout(keep, EVERY);
}

document.addEventListener("visibilitychange", look);
setInterval(grow, SECOND);
setTimeout(keep, EVERY);
