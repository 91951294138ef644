// A real Chromium, and what every test of a page wants to know: did anything break the policy, did anything run that
// should not, did the page say an error.
import { chromium } from "playwright-core";
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import path from "node:path";

const folder = path.dirname(fileURLToPath(import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const settings = JSON.parse(process.env.CONSOLE_TEST);
mkdirSync(settings.artefacts, { recursive: true });

const LOOKS = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
};

export async function open() {
  const executablePath = settings.chromium;
  return chromium.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

// A page that notes everything that must not happen.
export async function page(context) {
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`an error in a script: ${error.message}`));
  page.on("dialog", (dialog) => {
    page.faults.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("console", (message) => {
    const text = message.text();
    if (/Content Security Policy|Refused to/i.test(text)) page.faults.push(`the policy was violated: ${text}`);
    else if (message.type() === "error") page.faults.push(`the browser complains: ${text}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(settings.address) && !request.url().startsWith("data:")) page.faults.push(`asked elsewhere: ${request.url()}`);
  });
  return page;
}

export function expect(is, what) {
  if (!is) throw new Error(what);
}

export function nothingBad(page) {
  const faults = page.faults.splice(0);
  expect(faults.length === 0, faults.join("\n"));
}

// Signs a new context in by a one-time link, made with the token.
export async function signedIn(browser, look = "light", more = {}) {
  const context = await browser.newContext({ ...LOOKS[look], ...more });
  const answer = await fetch(`${settings.address}/api/v1/links`, {
    method: "POST",
    headers: { authorization: `Bearer ${settings.token}`, "content-type": "application/json" },
    body: "{}",
  });
  expect(answer.status === 201, `no link: ${answer.status}`);
  const { link } = await answer.json();
  const first = await page(context);
  await first.goto(link);
  await first.getByRole("button").click();
  await first.waitForURL(`${settings.address}/`);
  // A browser asks for an icon before it is signed in, and is refused like every stranger.
  first.faults.length = 0;
  return { context, page: first };
}

export async function accessible(page, what) {
  // As a tool of the browser, past the policy of the page.
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const serious = found.violations.filter((fault) => ["serious", "critical"].includes(fault.impact));
  const said = serious.map((fault) => `${what}: ${fault.id}: ${fault.help}: ${fault.nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
  expect(said.length === 0, said.join("\n"));
  return found.violations.length;
}

export async function picture(page, name) {
  await page.screenshot({ path: path.join(settings.artefacts, `${name}.png`), fullPage: true });
}

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));

// A run of the connector of these tests, as a process. It does not outlive the test.
export function run(connection, ...words) {
  const command = ["run", settings.root, connection, path.join(folder, "manifest.json"), "--", "python3", path.join(folder, "connector.py"), ...words];
  const child = spawn(settings.driver, command, { stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  const ended = new Promise((resolve) => child.on("close", () => {
    children.delete(child);
    resolve(said.trim());
  }));
  return { ended };
}

export async function eventually(what, look, limit = 20000) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    expect(Date.now() < end, `it did not happen in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
