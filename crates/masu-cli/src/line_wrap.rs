//! Pages that are laid out for 80 columns, on terminals that have fewer.
//!
//! The hard part is to recognize a page's layout from its lines alone: words behind a gap of two spaces form a column
//! and wrap inside it, and lines of one indent without a gap form a paragraph.

use std::fmt::Write as _;

use anstream::adapter::strip_str;

/// A gap of this many spaces begins a column.
const GAP: &str = "  ";

/// Lines with a larger indent form no paragraph: each line stands alone.
const TEXT_MOST: usize = 2;

/// `page` in lines of at most `columns` characters; styles take none.
pub(crate) fn fit(page: &str, columns: usize) -> String {
    let mut fitted = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let mut line = line.to_owned();
        if seen(&line) > columns {
            let indent = indent(&line);
            let is_text = |line: &str| {
                indent <= TEXT_MOST && self::indent(line) == indent && column(line).is_none()
            };
            while is_text(&line)
                && let Some(more) = lines.next_if(|next| !next.trim().is_empty() && is_text(next))
            {
                write!(line, " {}", more.trim_start()).expect("a string takes it");
            }
            broken(&mut fitted, &line, columns);
        } else {
            fitted.push_str(&line);
        }
        fitted.push('\n');
    }
    fitted
}

/// Adds a line that is too long, without its end.
fn broken(page: &mut String, line: &str, columns: usize) {
    let (first, rest, mut at) = match column(line) {
        // If the column leaves too little room, its text begins on the line below.
        Some((gap, at)) if at > columns / 2 => {
            page.push_str(line[..gap].trim_end());
            page.push('\n');
            let below = indent(line) + GAP.len();
            page.push_str(&" ".repeat(below));
            ("", &line[gap..], below)
        }
        Some((gap, at)) => (&line[..gap], &line[gap..], at),
        None => {
            let indent = indent(line);
            (&line[..indent], &line[indent..], indent)
        }
    };
    page.push_str(first);
    let (begin, mut is_first) = (at, true);
    for word in rest.split_whitespace() {
        for (part, is_new) in parts(word, columns - begin) {
            let space = usize::from(is_new && !is_first);
            if at + space + seen(part) > columns && at > begin {
                page.push('\n');
                page.push_str(&" ".repeat(begin));
                at = begin;
            } else if space == 1 {
                page.push(' ');
                at += 1;
            }
            page.push_str(part);
            at += seen(part);
            is_first = false;
        }
    }
}

/// Splits a word that does not fit on a line into parts that end in punctuation; each part says if it begins the word.
fn parts(word: &str, room: usize) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = word;
    while seen(rest) > room {
        let ends = |c: char| matches!(c, '=' | ',' | ':' | '/' | '.' | '_');
        let within = rest.char_indices().take_while(|(at, _)| seen(&rest[..*at]) < room);
        let Some((at, _)) = within.filter(|(at, c)| *at > 0 && ends(*c)).last() else { break };
        let (part, more) = rest.split_at(at + 1);
        parts.push((part, parts.is_empty()));
        rest = more;
    }
    parts.push((rest, parts.is_empty()));
    parts
}

/// The start of a line's last column, in bytes and in characters; none if the line has only one column.
fn column(line: &str) -> Option<(usize, usize)> {
    let indent = indent(line);
    let gap = indent + line[indent..].rfind(GAP)? + GAP.len();
    Some((gap, seen(&line[..gap])))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The columns that a text takes.
fn seen(text: &str) -> usize {
    strip_str(text).to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn text_is_broken_as_a_paragraph_and_columns_go_on_in_themselves() {
        let page = "\
One two three
four five.

  name   what it is for
  a=b  c
  long-name  what it is for
";
        let fitted = "\
One two three four
five.

  name   what it
         is for
  a=b  c
  long-name
    what it is for
";
        assert_eq!(fit(page, 80), page);
        let wide = page.replace("three", "three, 3, 3,");
        let broken = fitted.replace("three four\nfive.", "three, 3,\n3, four five.");
        assert_eq!(fit(&wide, 18), broken);
    }

    #[test]
    fn a_long_word_is_broken_behind_punctuation_and_styles_take_no_room() {
        assert_eq!(fit("A=glibc.malloc.top_pad=…\n", 16), "A=glibc.malloc.\ntop_pad=…\n");
        assert_eq!(fit("\u{1b}[1mbold\u{1b}[0m text\n", 9), "\u{1b}[1mbold\u{1b}[0m text\n");
    }
}
