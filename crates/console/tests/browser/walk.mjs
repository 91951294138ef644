// A day with the console, in a real browser: the first visit, a run that is watched, a code that is typed, a gap, the
// pace, a record and its history; then the same without scripts and without a mouse.
import { eventually, expect, nothingBad, open, page as newPage, run, settings, signedIn } from "./chromium.mjs";
import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

const CODE = "314159";
const browser = await open();
const at = (where) => `${settings.address}${where}`;
const step = (name) => console.log(`ok ${name}`);

// The first visit: a link that works once.
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await newPage(context);
const stranger = await page.goto(at("/"));
expect(stranger.status() === 401, "a stranger gets in");
await page.goto(settings.link);
await page.getByRole("button", { name: "Open Gleaner" }).click();
await page.waitForURL(at("/"));
page.faults.length = 0;
await page.getByRole("heading", { name: "Nothing is connected yet" }).waitFor();
const again = await browser.newContext();
const second = await newPage(again);
await second.goto(settings.link);
await second.getByRole("button").click();
expect((await second.goto(at("/"))).status() === 401, "the link works twice");
await again.close();
step("first visit by the one-time link");

// A run appears by itself: nobody reloads anything.
await page.evaluate(() => (window.sameDocument = true));
await run("letters", "first").ended;
await page.getByRole("link", { name: "letters", exact: true }).first().waitFor();
expect(await page.evaluate(() => window.sameDocument), "the page was loaded again instead of updated");
await page.getByText("86% of", { exact: false }).or(page.getByText("85.71 %").first()).waitFor();
step("the overview follows by itself");

// Watching a run live, and stopping it.
const slow = run("letters", "slow");
await page.goto(at("/connections/letters"));
await page.getByRole("link", { name: "Watch the run" }).click();
await page.getByText("slow step", { exact: false }).first().waitFor();
await page.evaluate(() => (window.sameDocument = true));
const newest = () => page.locator(".trace li").first().innerText();
const before = await newest();
await eventually("the trace goes on", async () => (await newest()) !== before);
expect(await page.evaluate(() => window.sameDocument), "the run was loaded again instead of followed");
await page.getByRole("button", { name: "Stop after its slice" }).click();
await page.getByText("The run was told to stop.").waitFor();
expect((await slow.ended) === "cancelled", "the run was not stopped");
await eventually("the cause is said", async () => /cancel|stopped/i.test(await page.locator("#cause").innerText()));
step("a run watched live, and stopped");

// A question: it shows up, what is typed survives an update, and the answer goes to the run and nowhere else.
await page.goto(at("/"));
const asks = run("letters", "otp");
await page.locator("#nav-inbox .count").waitFor();
await page.getByRole("link", { name: /^Answer/ }).click();
const field = page.getByRole("textbox", { name: "code" });
await field.fill(CODE.slice(0, 3));
await page.evaluate(() => document.body.dispatchEvent(new CustomEvent("gleaner:change")));
await page.waitForTimeout(700);
expect((await field.inputValue()) === CODE.slice(0, 3), "what was typed was lost by an update");
await field.fill(CODE);
await page.getByText(/left$/).first().waitFor();
await page.getByRole("button", { name: "Send" }).click();
await page.getByText("Your answer was handed to the run.").waitFor();
expect((await asks.ended) === "succeeded", "the run did not get its answer");
await page.goto(at("/data/letters/threads/record?key=answered"));
await page.getByText('"title": "right"').waitFor();
for (const name of readdirSync(settings.root, { recursive: true })) {
  const file = path.join(settings.root, name);
  if (statSync(file).isFile()) expect(!readFileSync(file).includes(CODE), `the answer is in ${name}`);
}
step("a code was asked for and answered");

// A gap: why, in three texts, and another try.
await page.goto(at("/gaps"));
for (const text of ["The provider rate-limited us", "Deferred by the limits of a run", "Failed, will be retried"]) {
  await page.getByRole("heading", { name: text }).waitFor();
}
await page.getByText("The service is limiting how fast it can be asked.").waitFor();
await page.getByText("This run saved a batch and stopped within its own budget.").waitFor();
await page.getByRole("link", { name: "letters / messages" }).first().click();
await page.getByRole("button", { name: "Try again" }).first().click();
await page.getByText("The gap will be tried again by the next run.").waitFor();
step("a gap, and another try");

// The pace: readout and chart.
await page.goto(at("/connections/letters"));
await page.getByText("requests a minute").first().waitFor();
await page.getByText("Why not faster").waitFor();
await eventually("the chart is drawn", async () => Number(await page.locator("[data-chart]").getAttribute("data-points")) > 20);
const inked = await page.locator(".chart canvas").evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, n) => n % 4 === 3 && value > 0);
});
expect(inked, "the chart is empty");
await page.getByText("When it slowed down, as a table").click();
await page.getByRole("cell", { name: "the service asked for a pause" }).first().waitFor();
step("the pace and its chart");

// A record, its history, and a deletion.
await run("letters", "second").ended;
await page.goto(at("/data"));
await page.getByRole("link", { name: "threads" }).click();
await page.getByRole("searchbox").fill("renamed");
await page.getByRole("button", { name: "Search" }).click();
await page.getByRole("link", { name: "thread-0001" }).click();
await page.getByText("Thread number 1, renamed").waitFor();
expect((await page.locator("pre.body").count()) === 2, "the history is not there");
await page.goto(at("/data/letters/threads/record?key=thread-0002"));
await page.getByText("deleted", { exact: true }).waitFor();
await page.getByText('"title": "Thread number 2"').waitFor();
step("a record and its history");

// Questions in SQL only read.
await page.goto(at("/data/sql"));
await page.getByLabel("Question").fill("DELETE FROM records");
await page.getByRole("button", { name: "Ask" }).click();
await page.getByRole("alert").getByText("Queries only read").waitFor();
await page.getByLabel("Question").fill("SELECT count(*) AS counted FROM records");
await page.getByRole("button", { name: "Ask" }).click();
await page.getByRole("columnheader", { name: "counted" }).waitFor();
step("SQL that reads, and SQL that would not");

// Pausing, and a schedule.
await page.goto(at("/connections/letters"));
await page.getByRole("button", { name: "Pause" }).click();
await page.getByText("It is paused").waitFor();
await page.getByRole("button", { name: "Resume" }).click();
await page.getByText("Resumed:").waitFor();
await page.getByLabel("Minutes between runs").fill("90");
await page.getByRole("button", { name: "Save the schedule" }).click();
await page.getByText("The schedule is saved.").waitFor();
expect((await page.getByLabel("Minutes between runs").inputValue()) === "90", "the schedule is not shown");
nothingBad(page);
await page.getByLabel("Minutes between runs").fill("often");
await page.getByRole("button", { name: "Save the schedule" }).click();
await page.getByRole("heading", { name: "This did not work" }).waitFor();
page.faults.length = 0;
step("pause, resume, schedule");

// The keyboard: the first stop leads past the navigation.
await page.goto(at("/"));
await page.keyboard.press("Tab");
expect((await page.evaluate(() => document.activeElement.textContent)) === "Skip to the content", "no way past the navigation");
await page.keyboard.press("Enter");
expect((await page.evaluate(() => document.activeElement.id)) === "main", "the way past the navigation leads nowhere");
nothingBad(page);
step("the keyboard");

// Without scripts: everything can be read, and forms work.
const plain = await signedIn(browser, "light", { javaScriptEnabled: false });
for (const where of ["/", "/connections/letters", "/gaps", "/inbox", "/data", "/data/letters/threads", "/settings"]) {
  const answer = await plain.page.goto(at(where));
  expect(answer.status() === 200, `${where}: ${answer.status()}`);
}
await plain.page.goto(at("/connections/letters"));
await plain.page.getByRole("button", { name: "Pause" }).click();
await plain.page.getByText("It is paused").waitFor();
await plain.page.getByRole("button", { name: "Resume" }).click();
await plain.page.getByText("Resumed:").waitFor();
step("without scripts");

// The weight of the first page, and how soon something is seen.
const fresh = await signedIn(browser, "light");
let weight = 0;
fresh.page.on("response", async (response) => {
  if (!response.url().includes("/events")) weight += (await response.body().catch(() => [])).length;
});
const paints = [];
for (let nth = 0; nth < 5; nth += 1) {
  const session = await fresh.context.newCDPSession(fresh.page);
  await session.send("Network.clearBrowserCache");
  weight = nth === 0 ? 0 : weight;
  await fresh.page.goto(at("/"), { waitUntil: "load" });
  paints.push(await eventually("a first paint", () => fresh.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime)));
  if (nth === 0) {
    await fresh.page.waitForTimeout(300);
    expect(weight > 0 && weight < 200_000, `the first page weighs ${weight} bytes`);
    console.log(`the first page weighs ${weight} bytes`);
  }
}
paints.sort((a, b) => a - b);
console.log(`first paint, median of five: ${paints[2].toFixed(0)} ms`);
expect(paints[2] < settings.paint, `the first paint takes ${paints[2]} ms`);
step("light and soon");

await browser.close();
