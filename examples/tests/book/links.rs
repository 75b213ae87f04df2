use std::fs;

use crate::pages::{Page, root};

/// How many relative links there are, and those that lead nowhere.
pub(crate) fn check(pages: &[Page]) -> (usize, Vec<String>) {
    let links: Vec<_> = pages.iter().flat_map(|page| targets(page).map(move |link| (page, link))).collect();
    let broken = links.iter().filter(|(page, link)| !leads_somewhere(page, link));
    (links.len(), broken.map(|(page, link)| format!("{}: {link}", page.path)).collect())
}

fn targets(page: &Page) -> impl Iterator<Item = &str> {
    let inside = page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    inside.filter(|target| !target.contains("://"))
}

fn leads_somewhere(page: &Page, link: &str) -> bool {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let here = root().join(&page.path);
    let target = if path.is_empty() { here } else { here.parent().unwrap().join(path) };
    match heading {
        None => target.exists(),
        Some(heading) => fs::read_to_string(target).is_ok_and(|text| has_heading(&text, heading)),
    }
}

/// As GitHub makes anchors: lower case, punctuation dropped, spaces as hyphens.
fn has_heading(text: &str, anchor: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    });
    anchors.any(|found| found == anchor)
}
