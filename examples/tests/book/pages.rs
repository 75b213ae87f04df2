use std::fs;
use std::path::{Path, PathBuf};

/// A page of the book.
#[derive(Debug)]
pub(crate) struct Page {
    /// From the workspace's root.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// README.md and everything under docs/.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/adr"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            paths.extend(name.ends_with(".md").then(|| format!("{folder}/{name}")));
        }
    }
    paths.iter().map(|path| Page::read(path)).collect()
}

impl Page {
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text }
    }

    /// The insides of the fenced blocks with this word behind the fence.
    pub(crate) fn blocks(&self, language: &str) -> Vec<&str> {
        let fence = format!("\n```{language}\n");
        let begun = self.text.split(fence.as_str()).skip(1);
        begun.map(|rest| &rest[..=rest.find("\n```").expect("a block that is not closed")]).collect()
    }

    /// What stands between backticks in the text, outside fenced blocks.
    pub(crate) fn spans(&self) -> Vec<&str> {
        let prose = self.text.split("\n```").step_by(2);
        prose.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
    }
}
