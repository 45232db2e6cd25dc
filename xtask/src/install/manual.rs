//! The manual page masu(3), made from `masu.h`.
//!
//! It relies on how the header is written: a section opens with `/* ---- Title ----`, a comment that
//! begins at the left margin speaks of the declarations below it, up to the next empty line. So
//! there is one place to say what a function does.

pub(super) fn page(header: &str) -> String {
    let mut page = format!(
        ".TH MASU 3 \"\" \"masu {}\" \"Library functions\"\n\
         .SH NAME\n\
         masu \\- a malloc, and what it offers to C and C++ beyond malloc\n\
         .SH SYNOPSIS\n\
         .nf\n\
         .B #include <masu.h>\n\
         .fi\n\
         .PP\n\
         .nf\n\
         cc program.c $(pkg-config --cflags --libs masu)\n\
         cc program.c $(pkg-config --cflags --libs masu-static)\n\
         cc program.c $(pkg-config --cflags --libs masu-secure)\n\
         cc -static program.c $(pkg-config --static --cflags --libs masu)\n\
         .fi\n\
         .SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut blocks = header.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let about = blocks.next().map(comment_of).unwrap_or_default().0;
    // The last paragraph there speaks to developers of the library.
    let about = about.split("COUPLING:").next().unwrap_or_default();
    // And the first one says what the page's name says.
    paragraphs(&mut page, about.split_once("\n\n").map_or("", |(_, rest)| rest));
    let mut in_sections = false;
    for block in blocks {
        let (comment, code) = comment_of(block);
        in_sections |= comment.starts_with("----");
        if !in_sections {
            continue;
        }
        if let Some(rest) = comment.strip_prefix("---- ") {
            let (title, rest) = rest.split_once(" --").unwrap_or((rest, ""));
            page.push_str(&format!(".SH {}\n", title.to_uppercase()));
            paragraphs(&mut page, rest.trim_start_matches('-'));
            continue;
        }
        declarations(&mut page, code);
        if !comment.is_empty() {
            page.push_str(".RS\n");
            paragraphs(&mut page, &comment);
            page.push_str(".RE\n");
        }
    }
    page.push_str(".SH SEE ALSO\n.BR masu (1),\n.BR malloc (3),\n.BR mallopt (3)\n");
    page
}

/// The comment that a block begins with, without its marks, and the rest.
fn comment_of(block: &str) -> (String, &str) {
    let Some((comment, code)) = block.strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
    else {
        return (String::new(), block);
    };
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*').trim());
    (lines.collect::<Vec<_>>().join("\n").trim().to_owned(), code.trim())
}

/// Text, its empty lines between paragraphs; a line that begins with a dot is no request.
fn paragraphs(page: &mut String, text: &str) {
    for paragraph in text.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
        let escaped = paragraph.replace('\\', "\\e").replace("\n.", "\n\\&.").replace('-', "\\-");
        page.push_str(&format!(".PP\n{escaped}\n"));
    }
}

/// Code as it is, without what only compilers want to know.
fn declarations(page: &mut String, code: &str) {
    const MARKS: [&str; 4] = ["MASU_API ", " MASU_NOTHROW", " MASU_LIBC_NOTHROW", "MASU_ATTRIBUTE"];
    let mut code = code.to_owned();
    while let Some(at) = code.find(MARKS[3]) {
        let end = code[at..].find(';').map_or(code.len(), |end| at + end);
        // On a line of its own or behind the rest of one.
        let start = code[..at].trim_end().len();
        code.replace_range(start..end, "");
    }
    for mark in MARKS {
        code = code.replace(mark, "");
    }
    let is_shown = |line: &&str| {
        let conditional = ["#if", "#endif", "#else", "extern \"C\"", "#ifdef"];
        !conditional.iter().any(|start| line.starts_with(start)) && *line != "}"
    };
    let lines: Vec<&str> = code.lines().filter(is_shown).collect();
    if !lines.is_empty() {
        let code = lines.join("\n").replace('\\', "\\e").replace('-', "\\-");
        page.push_str(&format!(".PP\n.nf\n\\fB{code}\\fR\n.fi\n"));
    }
}
