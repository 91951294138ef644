// A first visit to the console of the real service, by the link that it prints: a connection is added whose check fails
// with a bad token and then works, its run is watched to its end, and what came of it is downloaded. Then the pages around
// it, the same without scripts, and connectors whose texts want to be more than texts.
import { accessible, eventually, expect, nothingBad, open, page as newPage, picture, settings, signedIn } from "./chromium.mjs";
import { readFileSync } from "node:fs";

const { url, good, bad } = JSON.parse(process.argv[2]);
const browser = await open();
const at = (where) => `${settings.address}${where}`;
const step = (name) => console.log(`ok ${name}`);
const hasNoSecret = async (page) => {
  const html = await page.content();
  expect(!html.includes(good) && !html.includes(bad), "a credential is in the page");
  expect(!page.url().includes(good) && !page.url().includes(bad), "a credential is in the address");
};

const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
const page = await newPage(context);
await page.goto(settings.link);
await page.getByRole("button", { name: "Open Gleaner" }).click();
await page.waitForURL(at("/"));
page.faults.length = 0;
await page.getByRole("heading", { name: "Nothing is connected yet" }).waitFor();
await picture(page, "first-visit-light");
await page.getByRole("link", { name: "Add a connection" }).click();
await page.getByRole("heading", { name: "Calendar (iCalendar)" }).waitFor();
await page.getByRole("link", { name: "Set up Shop", exact: true }).click();
await page.getByRole("heading", { name: "Shop" }).waitFor();
step("the first visit leads to adding");

// A bad token: said in a sentence with what to do, and nothing is lost that was typed.
expect((await page.getByLabel("Name of the connection").inputValue()) === "shop", "no name is proposed");
await page.getByLabel("Address of the shop").fill(url);
await page.getByLabel("SHOP_TOKEN").fill(bad);
await page.evaluate(() => (window.sameDocument = true));
await page.getByRole("button", { name: "Check and add" }).click();
await page.getByText("It was not added. The service did not accept the credentials").waitFor();
await page.getByText("make new ones at the service if need be").waitFor();
expect(await page.evaluate(() => window.sameDocument), "the page was loaded again, and what was typed is gone");
expect((await page.getByLabel("Address of the shop").inputValue()) === url, "what was typed was lost");
await hasNoSecret(page);
await accessible(page, "a check that failed");
await picture(page, "add-refused-light");
expect((await page.request.get(at("/api/v1/connections"))).status() === 200, "no list");
expect((await (await page.request.get(at("/api/v1/connections"))).json()).items.length === 0, "it was added all the same");
step("a check that fails says what to do");

await page.getByLabel("SHOP_TOKEN").fill(good);
await page.getByRole("button", { name: "Only check" }).click();
await page.getByText("It works: the service answered.").waitFor();
await picture(page, "add-works-light");
await page.getByRole("button", { name: "Check and add" }).click();
await page.waitForURL(at("/connections/shop?done=added"));
await page.getByText("Connection added.").waitFor();
await hasNoSecret(page);
nothingBad(page);
step("and then it works");

// A run, watched to its end.
await page.getByRole("button", { name: "Run now" }).click();
await page.getByRole("link", { name: "Watch the run" }).click();
await page.getByText("order 3", { exact: false }).first().waitFor();
await page.evaluate(() => (window.sameDocument = true));
await picture(page, "run-live-light");
const newest = () => page.locator(".trace li").first().innerText();
const before = await newest();
await eventually("the trace goes on", async () => (await newest()) !== before);
await eventually("the end is said", async () => /The run finished/.test(await page.locator("#cause").innerText().catch(() => "")), 60000);
expect(await page.evaluate(() => window.sameDocument), "the run was loaded again instead of followed");
await picture(page, "run-ended-light");
step("a run watched to its end");

// Downloads.
await page.goto(at("/data"));
await page.getByRole("link", { name: "orders" }).click();
const got = async (name) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name, exact: true }).click()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
};
const table = await got("As a table (CSV)");
expect(table.name === "shop.orders.csv", table.name);
expect(table.text.split("\n").length === 42, `${table.text.split("\n").length} lines`);
expect(table.text.includes(`"'=order(3)"`) && !/(^|,)"?=/m.test(table.text), "a spreadsheet would compute it");
const lines = await got("As JSON lines");
expect(lines.name === "shop.orders.jsonl", lines.name);
const records = lines.text.trim().split("\n").map((line) => JSON.parse(line));
expect(records.length === 40 && records.some((record) => record.data.note === "=order(3)"), "not what was stored");
await picture(page, "stream-light");
step("downloads");

// The doctor and the laboratory.
await page.goto(at("/settings"));
await page.getByRole("link", { name: "Run the checks" }).click();
await page.getByRole("rowheader", { name: "store pages" }).waitFor();
await page.goto(at("/lab"));
await page.getByRole("heading", { name: "Can the pace be trusted?" }).waitFor();
expect((await page.locator(".lab-chart svg path").count()) > 2, "the chart is empty");
await page.getByRole("link", { name: "strikes", exact: true }).click();
await page.getByRole("heading", { name: "strikes", exact: true }).waitFor();
nothingBad(page);
step("doctor and laboratory");

// Connectors whose texts want to be more than texts; one whose manifest is wrong is named and left out.
for (const where of ["/add", "/add/evil", `/add/${encodeURIComponent("<img src=x onerror=window.pwned=1>")}`, `/lab?of=${encodeURIComponent("<img src=x onerror=window.pwned=1>")}`]) {
  const answer = await page.goto(at(where), { waitUntil: "load" });
  if (answer.status() === 404) page.faults = page.faults.filter((fault) => !fault.includes("404"));
  await unharmed(where);
}
await page.goto(at("/add"));
expect((await page.getByText("Left out:").count()) === 1, "what is wrong is not named, or more than that is");
await page.goto(at("/add/evil"));
await page.getByRole("button", { name: "Only check" }).click();
await page.getByText("SHOP_TOKEN is missing").waitFor();
await page.getByLabel("SHOP_TOKEN").fill("x");
await page.getByRole("button", { name: "Only check" }).click();
await page.getByText("The connector does not work like this", { exact: false }).waitFor();
await unharmed("the check of a strange connector");
await page.getByLabel("Name of the connection").fill('"><img src=x onerror=window.pwned=1>');
await page.getByRole("button", { name: "Add it all the same" }).click();
await page.waitForURL(/\/connections\/.*done=added/);
await unharmed("the connection of a strange connector");
await page.goto(at("/settings/doctor"));
await unharmed("the doctor with a strange connection");
step("texts stay texts");

async function unharmed(where) {
  expect(!(await page.evaluate(() => window.pwned)), `${where}: something ran`);
  const strange = await page.evaluate(() => document.querySelectorAll("main script, main img, main svg:not(.lab-chart svg), main iframe, main [onerror], main [onload], main a[href^='javascript' i]").length);
  expect(strange === 0, `${where}: ${strange} elements came out of a text`);
  const read = await page.locator("main").innerText();
  expect(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u.test(read), `${where}: an escape reaches the page`);
  nothingBad(page);
}

// A form of another site is refused, with the browser's own session.
const forged = await context.request.post(at("/add/shop"), { form: { name: "forged", act: "anyway" }, headers: { origin: "http://evil.test" } });
expect(forged.status() === 403, `a form of another site: ${forged.status()}`);
const unsaid = await context.request.post(at("/add/shop"), { form: { name: "forged", act: "anyway" } });
expect(unsaid.status() === 403, `a form of nobody's: ${unsaid.status()}`);
const asked = await context.request.get(at("/add/shop?act=anyway&name=forged"));
expect(asked.status() === 200 && !(await (await context.request.get(at("/api/v1/connections"))).text()).includes("forged"), "a GET adds");
step("only forms of this page add");

// Without scripts.
const plain = await signedIn(browser, "light", { javaScriptEnabled: false });
for (const where of ["/add", "/add/ical", "/settings/doctor", "/lab"]) {
  const answer = await plain.page.goto(at(where));
  expect(answer.status() === 200, `${where}: ${answer.status()}`);
}
await plain.page.goto(at("/add/shop"));
expect((await plain.page.getByLabel("Name of the connection").inputValue()) === "shop-2", "a name that is taken is proposed");
await plain.page.getByLabel("Address of the shop").fill(url);
await plain.page.getByLabel("SHOP_TOKEN").fill(bad);
await plain.page.getByRole("button", { name: "Check and add" }).click();
await plain.page.getByText("It was not added. The service did not accept the credentials").waitFor();
expect((await plain.page.getByLabel("Address of the shop").inputValue()) === url, "a setting has to be typed again");
expect((await plain.page.getByLabel("SHOP_TOKEN").inputValue()) === "", "a credential came back");
const html = await plain.page.content();
expect(!html.includes(bad), "a credential is in the page");
await plain.page.getByLabel("SHOP_TOKEN").fill(good);
await plain.page.getByRole("button", { name: "Check and add" }).click();
await plain.page.getByText("Connection added.").waitFor();
step("without scripts");
await browser.close();
