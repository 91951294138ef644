//! `gleaner init`: makes the data root, the store and a file of settings, and leaves alone what is there.

use crate::args::collect::HomeArgs;
use crate::config;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_base::outside::one_line;

pub(crate) fn run(home: &HomeArgs, out: &mut Output) -> Result<(), CliError> {
    let app = home.app()?;
    let made = app.init(&config::template())?;
    let word = |made: bool| if made { "made" } else { "was there" };
    out.line(&one_line(&format!("{}  the data root", app.root().display())))?;
    out.line(&format!("  store.db     {}", word(made.made_store)))?;
    out.line(&format!("  config.toml  {}", word(made.made_config)))?;
    Ok(out.line("next: gleaner add, or gleaner demo to see how it goes")?)
}
