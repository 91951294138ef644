//! What a page names: taken out of its text, without knowing what exists.

/// A command line in a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The words after `gleaner` that are not options, up to the first that looks like neither a command nor a name.
    pub(crate) words: Vec<String>,
    pub(crate) options: Vec<String>,
}

impl Named {
    /// Every `gleaner …` in code.
    pub(crate) fn commands(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for code in code_of(text) {
            let tokens = code.split_whitespace().collect::<Vec<_>>();
            for (at, token) in tokens.iter().enumerate() {
                let is_ours = *token == "gleaner" && tokens.get(at + 1) != Some(&"gleaner");
                // `cargo run -p gleaner -- demo`, and not the name of a package, an image or a volume.
                let is_cargo = *token == "--" && at > 1 && tokens[at - 1] == "gleaner" && tokens[at - 2] == "-p";
                let is_name = at > 0 && matches!(tokens[at - 1], "-p" | "-u" | "-t" | "--name" | "restart" | "stop");
                if is_cargo || (is_ours && !is_name) {
                    found.extend(Self::read(&tokens[at + 1..]));
                }
            }
        }
        found
    }

    fn read(tokens: &[&str]) -> Option<Self> {
        let mut named = Self { words: Vec::new(), options: Vec::new() };
        for token in tokens {
            if matches!(*token, "#" | "|" | "||" | "&&" | ";" | ">" | "2>" | "--" | "\\" | "&" | "gleaner") {
                break;
            }
            let token = token.trim_end_matches([',', '.', ':', ')', ';']);
            if let Some(option) = option(token) {
                named.options.push(option);
            } else if !token.starts_with('-') && !token.starts_with(['\'', '"', '(']) {
                named.words.push(token.to_owned());
            }
        }
        let is_word = |word: &String| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        named.words.first().is_some_and(is_word).then_some(named)
    }

    /// Every `--option` in code.
    pub(crate) fn options(text: &str) -> Vec<String> {
        let tokens = code_of(text).into_iter().flat_map(|code| {
            code.split(|letter: char| {
                letter.is_whitespace() || matches!(letter, '(' | ')' | '[' | ']' | '|' | ',' | '`')
            })
            .filter_map(option)
            .collect::<Vec<_>>()
        });
        tokens.collect()
    }

    /// Every target of a link that is a file, without its anchor.
    pub(crate) fn links(text: &str) -> Vec<String> {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
        files.map(|target| target.split('#').next().unwrap_or_default().to_owned()).collect()
    }

    /// Every path of the tree in code: it begins with a folder of the root.
    pub(crate) fn paths(text: &str) -> Vec<String> {
        const FOLDERS: [&str; 9] =
            ["crates/", "docs/", "scripts/", "scenarios/", "examples/", "tests/support", "fuzz/", "benches/", ".ci/"];
        let code = code_of(text).join(" ");
        let paths = code.split_whitespace().filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
        let whole = paths.filter(|path| !path.contains(['{', '*', '<']));
        whole.map(|path| path.trim_end_matches([',', '.']).to_owned()).collect()
    }

    /// Every variable that is ours by its name, anywhere.
    pub(crate) fn variables(text: &str) -> Vec<String> {
        let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        let names = text.split(|letter| !is_part(letter));
        let is_ours = |name: &&str| {
            ["GLEANER_", "PDPP_"].iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix))
        };
        names.filter(is_ours).map(|name| name.trim_end_matches('_').to_owned()).collect()
    }

    /// Every number after "exit", "exits", "exit code".
    pub(crate) fn exit_codes(text: &str) -> Vec<u8> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.collect::<Vec<_>>();
        let mut codes = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if matches!(*word, "exit" | "exits") {
                let rest = words[at + 1..].iter().find(|word| !matches!(**word, "code" | "with"));
                codes.extend(rest.and_then(|word| word.parse::<u8>().ok()));
            }
        }
        codes
    }
}

/// `--long-option`, without its value.
fn option(token: &str) -> Option<String> {
    let token = token.split(['=', '…']).next()?.trim_end_matches([',', '.', ':', ')', ';', '`']);
    let name = token.strip_prefix("--")?;
    let is_name = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    (name.len() > 1 && is_name && !name.starts_with('-')).then(|| token.to_owned())
}

/// Code in a page: what stands between backticks, and the lines of blocks that are for a shell. What a shell would print
/// is not code, and neither are blocks in another language.
fn code_of(text: &str) -> Vec<String> {
    let (mut code, mut block) = (Vec::new(), None::<bool>);
    let mut prose = String::new();
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = match block {
                None => Some(matches!(language.trim(), "" | "sh" | "text" | "console" | "bash")),
                Some(_) => None,
            };
            continue;
        }
        match block {
            None => {
                prose.push_str(line);
                prose.push('\n');
            }
            Some(true) => code.push(line.trim_start().trim_start_matches("$ ").to_owned()),
            Some(false) => {}
        }
    }
    code.extend(prose.split('`').skip(1).step_by(2).map(str::to_owned));
    code
}

#[test]
fn what_a_page_names_is_found() {
    let text = "Say `gleaner run shop --json`, or:\n```sh\n$ podman exec -it gleaner gleaner status --all\ncargo run -p gleaner -- demo\n```\n\
        ```rust\nlet gleaner = run();\n```\nIt exits with code 3 (`--x-y=Z`), `GLEANER_HOME`, PDPP_A_B, not exit.";
    let words = Named::commands(text).into_iter().map(|named| named.words.join(" ")).collect::<Vec<_>>();
    assert_eq!(words, ["status", "demo", "run shop"]);
    assert_eq!(Named::options(text), ["--all", "--json", "--x-y"]);
    assert_eq!(Named::variables(text), ["GLEANER_HOME", "PDPP_A_B"]);
    assert_eq!(Named::exit_codes(text), [3]);
}
