//! The page as it is pasted into an issue.

use super::*;

#[test]
fn the_page_as_it_is_pasted() {
    let page = render(&fixtures::of_commands(), Format::Markdown);
    snapbox::assert_data_eq!(page, snapbox::file!["page.md"].raw());
}

#[test]
fn a_label_neither_breaks_the_table_nor_becomes_html() {
    let mut document = fixtures::of_commands();
    let table = &mut document.sources[0].tables[0];
    table.summary.rows[1].variant = "a|b<script>\n@all*".to_owned();
    table.summary.warnings = vec!["<img src=x> [a](b)".to_owned()];
    let page = render(&document, Format::Markdown);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("@all"));
    assert!(page.contains("\\[a\\](b)"), "{page}");
    let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| bars(line) == bars(lines[0])), "{page}");
}
