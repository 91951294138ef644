// Texts that want to be more than texts, in every field that a connector can fill: none of them runs, loads or breaks
// the policy, and each is there to be read. Before that, the checks themselves are checked.
import { accessible, expect, nothingBad, open, page as newPage, run, settings, signedIn, eventually } from "./chromium.mjs";

const at = (where) => `${settings.address}${where}`;
const browser = await open();
const { context, page } = await signedIn(browser);

// The checks can fail: a script that is put into a page is refused and noticed, and so is a picture without words.
await page.goto(at("/inbox"));
await page.evaluate(() => {
  const script = document.createElement("script");
  script.textContent = "window.pwned = true";
  document.body.append(script);
});
await eventually("the policy speaks", () => page.faults.some((fault) => fault.includes("policy")));
expect(!(await page.evaluate(() => window.pwned)), "an inline script runs: the policy does not hold");
page.faults.length = 0;
await page.evaluate(() => document.body.append(Object.assign(document.createElement("button"), { className: "x" })));
const blind = await accessible(page, "control").then(() => true, () => false);
expect(!blind, "a button without a name is not noticed");
console.log("ok the checks can fail");

const PAYLOADS = JSON.parse(process.argv[2]);
let nth = 0;
for (const payload of PAYLOADS) {
  nth += 1;
  const name = `p${nth}`;
  const asks = run(name, "payload", payload, name);
  await eventually("it asks", async () => {
    await page.goto(at("/inbox"));
    return (await page.locator(`section[aria-labelledby^="question-title"]`).count()) > 0;
  });
  const id = (await page.locator("section[aria-labelledby^=question-title]").first().getAttribute("id")).split("-")[1];
  await page.goto(at("/data/" + name + "/threads"));
  const record = await page.locator("tbody th a").first().getAttribute("href");
  await page.goto(at(`/connections/${name}`));
  const watch = await page.getByRole("link", { name: "Watch the run" }).getAttribute("href");
  for (const where of ["/", `/connections/${name}`, watch, "/gaps", `/connections/${name}/gaps`, "/inbox", "/data", `/data/${name}/threads`, record,
    `/data/${name}/threads?q=${encodeURIComponent([...payload].slice(0, 190).join(""))}`, `/data/sql?q=${encodeURIComponent("SELECT key, body FROM versions")}`,
    `/data/sql?q=${encodeURIComponent(payload)}`, `/connections/${encodeURIComponent(payload)}`, `/runs/${encodeURIComponent(payload)}`]) {
    const answer = await page.goto(at(where), { waitUntil: "load" });
    await page.evaluate(() => document.body.dispatchEvent(new CustomEvent("gleaner:change")));
    await page.waitForTimeout(60);
    // A page that says that there is nothing is a complaint of the browser's, too.
    if (answer.status() === 404) page.faults = page.faults.filter((fault) => !fault.includes("404"));
    expect(!(await page.evaluate(() => window.pwned)), `${where}: something ran`);
    const strange = await page.evaluate(() => document.querySelectorAll("main script, main img, main svg, main iframe, main style, main [onerror], main [onload], main a[href^='javascript' i], main marquee, main object").length);
    expect(strange === 0, `${where}: ${strange} elements came out of a text`);
    try {
      nothingBad(page);
    } catch (error) {
      throw new Error(`${where}: ${error.message}`);
    }
  }
  await page.goto(at(watch));
  const read = await page.locator("main").innerText();
  // What is not a letter of ours is there as its number.
  expect(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(read), "an escape reaches the page");
  if (/[\u0000-\u001f\u202a-\u202e]/u.test(payload)) expect(/\\u\{(1b|202e|7|9b)\}/.test(read), "an escape cannot be seen");
  await page.goto(at("/inbox"));
  await page.locator(`#question-${id}`).getByRole("button", { name: "Decline" }).click();
  await page.getByText("The question was declined.").waitFor();
  await asks.ended;
  // Its error message stands on the run's page.
  await page.goto(at(watch));
  nothingBad(page);
  console.log(`ok payload ${nth}`);
}
await context.close();
await browser.close();
