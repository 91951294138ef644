// What the owner does beyond looking, below a base path, so that every address is tried with one: the door, a gap that is
// ignored with a note, a picture of a step to take, and updates that miss nothing and take no click away.
import { accessible, eventually, expect, nothingBad, open, page as newPage, picture, run, settings, signedIn } from "./chromium.mjs";

const browser = await open();
const at = (where) => `${settings.address}${where}`;
const step = (name) => console.log(`ok ${name}`);
const change = (page) => page.evaluate(() => document.body.dispatchEvent(new CustomEvent("gleaner:change")));

// The door, for whoever is not inside: it has a face, and says how to get in.
const outside = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const stranger = await newPage(outside);
const refused = await stranger.goto(at("/connections/letters"));
expect(refused.status() === 401 && refused.headers()["content-type"].startsWith("text/html"), "a browser gets no page");
await stranger.getByText("This browser is not signed in.").waitFor();
await stranger.getByText("gleaner serve").waitFor();
const rounded = await stranger.locator(".card").evaluate((card) => getComputedStyle(card).borderTopWidth);
expect(rounded !== "0px", "the door has no style");
await picture(stranger, "door");
await accessible(stranger, "door");
stranger.faults = stranger.faults.filter((fault) => !fault.includes("status of 401"));
nothingBad(stranger);
const asJson = await fetch(at("/connections/letters"));
expect(asJson.status === 401 && asJson.headers.get("content-type") === "application/json", "a program gets a page");
await outside.close();
step("the door");

// Every entry of the navigation, and what is behind it, stays below the base path.
await run("letters", "first").ended;
const { page } = await signedIn(browser);
for (const name of ["Inbox", "Gaps", "Data", "Settings", "Overview"]) {
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name }).click();
  await page.locator("h1").first().waitFor();
}
await page.goto(at("/connections/letters"));
const links = await page.evaluate(() => [...document.querySelectorAll("a[href], form[action]")].map((one) => one.href || one.action));
expect(links.length > 10, "there is nothing to follow");
for (const link of links) expect(link.startsWith(`${settings.address}/`), `leads out of the base path: ${link}`);
await eventually("the chart is drawn", async () => Number(await page.locator("[data-chart]").getAttribute("data-points")) > 20);
nothingBad(page);
step("below a base path");

// A gap that nobody needs: a note, which survives an update while it is typed; and back again.
await page.goto(at("/connections/letters/gaps"));
await page.locator("details.ignore summary").first().click();
const note = page.locator("details.ignore textarea").first();
await note.fill("seen else");
await change(page);
await page.waitForTimeout(500);
expect((await note.inputValue()) === "seen else", "what was typed was lost by an update");
await note.fill("seen elsewhere <b>");
await page.getByRole("button", { name: "Ignore this gap" }).first().click();
await page.getByText("The gap is ignored: it stays on record as missing").waitFor();
await page.getByText("seen elsewhere <b>").waitFor();
await page.getByText(/^\d+ missing: .*1 ignored by you\.$/).waitFor();
await picture(page, "gap-ignored");
await accessible(page, "a gap that is ignored");
await page.goto(at("/gaps"));
await page.getByRole("heading", { name: "Ignored by you" }).waitFor();
await page.goto(at("/connections/letters"));
await page.getByText("1 gap is ignored, as you said").waitFor();
await page.goto(at("/connections/letters/gaps"));
await page.getByRole("button", { name: "Take back" }).click();
await page.getByText("The gap is wanted again").waitFor();
await page.getByText(/^\d+ missing: (?!.*ignored by you)/).waitFor();
step("a gap ignored with a note, and taken back");

// What changes after a page was made and before its stream of events is there is not missed. Another tab listens all the
// time, so nobody begins to look anew; and no run goes on, whose signs of life would be changes too.
const say = (what) => fetch(at(`/api/v1/connections/letters/${what}`), {
  method: "POST",
  headers: { authorization: `Bearer ${settings.token}`, "content-type": "application/json" },
  body: "{}",
});
const other = await signedIn(browser);
await other.page.goto(at("/connections/letters"));
await other.page.locator("#live-state").getByText("Live").waitFor();
let release;
const gate = new Promise((resolve) => (release = resolve));
await page.route("**/api/v1/events", async (route) => {
  await gate;
  await route.continue();
});
await page.goto(at("/connections/letters"));
expect((await say("pause")).status === 204, "it was not paused");
await other.page.getByRole("button", { name: "Resume" }).waitFor();
expect((await page.getByRole("button", { name: "Resume" }).count()) === 0, "it was told without a stream");
release();
await page.getByRole("button", { name: "Resume" }).waitFor();
await page.unroute("**/api/v1/events");
await other.context.close();
await say("resume");
step("nothing is missed before the stream is there");

// A step to take, with its picture.
const asks = run("letters", "picture", settings.root);
await page.locator("#nav-inbox .count").waitFor();
await page.goto(at("/inbox"));
const shown = page.getByRole("img", { name: "The page as it was" });
await shown.waitFor();
await eventually("the picture is drawn", () => shown.evaluate((img) => img.complete && img.naturalWidth === 2 && img.naturalHeight === 3));
const where = await shown.evaluate((img) => img.src);
const bare = await fetch(where);
expect(bare.status === 401, `a stranger sees the picture: ${bare.status}`);
await picture(page, "inbox-picture");
await accessible(page, "a question with a picture");
nothingBad(page);
step("a step with its picture");

// What is pressed stays where it is until it is let go, whatever changes meanwhile.
const button = page.getByRole("button", { name: "It is done" });
const box = await button.boundingBox();
await page.evaluate(() => (document.getElementById("live").dataset.before = "yes"));
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
await page.mouse.down();
await change(page);
await page.waitForTimeout(700);
expect((await page.locator("#live").getAttribute("data-before")) === "yes", "it was replaced under the finger");
await page.mouse.up();
await page.getByText("Your answer was handed to the run.").waitFor();
expect((await asks.ended) === "succeeded", "the run did not get its answer");
const gone = await page.request.get(where);
expect(gone.status() === 404, `the picture of an answered question is still there: ${gone.status()}`);
step("no click is taken away");

await browser.close();
