use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_contradicts_itself_nowhere() {
    Args::command().debug_assert();
}

/// Every command but the hidden one has examples, and they can be typed.
#[test]
fn the_examples_of_the_help_are_understood() {
    let mut seen = 0;
    for command in Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert!(!examples.is_empty(), "{} has no example", command.get_name());
        for example in examples {
            let words = example.split(" > ").next().unwrap_or_default().split(' ');
            let parsed = Args::try_parse_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

#[test]
fn urls_do_not_show() {
    let words =
        ["aftercommit", "demo", "--broker", "amqp://u:secret@h", "--database", "postgres://u:secret@h"];
    let shown = format!("{:?}", Args::try_parse_from(words).unwrap());
    assert!(!shown.contains("secret"), "{shown}");
}

/// What the book tells a reader to type is understood.
#[test]
fn the_commands_of_the_book_are_understood() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = ["README.md", "docs/lab.md"].map(|page| std::fs::read_to_string(root.join(page)).unwrap());
    let ours = |line: &&str| line.starts_with("cargo run -p aftercommit-cli ");
    let commands: Vec<_> = pages.iter().flat_map(|page| page.lines()).filter(ours).collect();
    assert!(commands.len() >= 6, "only {commands:?}: are they still written like this?");
    for command in commands {
        let words = command.split_once(" -- ").expect("arguments").1.split(' ');
        let parsed = Args::try_parse_from(std::iter::once("aftercommit").chain(words));
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
    }
}
