// Every page in light, dark and on a phone, kept as pictures, and searched for faults of accessibility.
import { accessible, nothingBad, open, picture, settings, signedIn } from "./chromium.mjs";

const PAGES = JSON.parse(process.argv[2]);
const browser = await open();
for (const look of ["light", "dark", "phone"]) {
  const { context, page: shown } = await signedIn(browser, look);
  for (const [name, address] of Object.entries(PAGES)) {
    await shown.goto(`${settings.address}${address}`, { waitUntil: "load" });
    await shown.waitForTimeout(250);
    await picture(shown, `${name}-${look}`);
    const less = await accessible(shown, `${name}, ${look}`);
    const wide = await shown.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 1) throw new Error(`${name}, ${look}: ${wide} pixels wider than the screen`);
    // A page that says that there is nothing is a complaint of the browser's, too.
    shown.faults = shown.faults.filter((fault) => !fault.includes("status of 404"));
    nothingBad(shown);
    console.log(`${name} ${look}: ${less} smaller remarks`);
  }
  await context.close();
}
await browser.close();
