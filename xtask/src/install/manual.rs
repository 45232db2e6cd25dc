//! The manual pages masu(3) and masu_code(3), made from the headers.
//!
//! It relies on the form of a header: a section opens with `/* ---- Title ----`, and a comment that begins at the
//! left margin describes the declarations below it, up to the next one or an empty line. So a function is described
//! in one place only.

/// A library's page, without the text from its header.
pub(super) struct Page {
    /// The name of the page and of the header.
    pub(super) name: &'static str,
    about: &'static str,
    /// The commands that compile a program, a line each.
    compile: &'static [&'static str],
    see_also: &'static str,
}

pub(super) const MALLOC: Page = Page {
    name: "masu",
    about: "a malloc, and what it offers to C and C++ beyond malloc",
    compile: &[
        "cc program.c $(pkg-config --cflags --libs masu)",
        "cc program.c $(pkg-config --cflags --libs masu-static)",
        "cc program.c $(pkg-config --cflags --libs masu-secure)",
        "cc -static program.c $(pkg-config --static --cflags --libs masu)",
    ],
    see_also: ".BR masu (1),\n.BR malloc (3),\n.BR mallopt (3)\n",
};

pub(super) const CODE: Page = Page {
    name: "masu_code",
    about: "a code arena: relocatable objects loaded densely, unloaded safely",
    compile: &[
        "cc program.c $(pkg-config --cflags --libs masu_code)",
        "cc program.c $(pkg-config --cflags --libs masu_code-static)",
    ],
    see_also: ".BR masu (1),\n.BR masu (3),\n.BR dlopen (3)\n",
};

impl Page {
    pub(super) fn of(&self, header: &str) -> String {
        let Page { name, about, compile, see_also } = self;
        let mut page = format!(
            ".TH {} 3 \"\" \"masu {}\" \"Library functions\"\n\
             .SH NAME\n\
             {name} \\- {about}\n\
             .SH SYNOPSIS\n\
             .nf\n\
             .B #include <{name}.h>\n\
             .fi\n\
             .PP\n\
             .nf\n\
             {}\n\
             .fi\n\
             .SH DESCRIPTION\n",
            name.to_uppercase(),
            env!("CARGO_PKG_VERSION"),
            compile.join("\n"),
        );
        let (about, rest) = comment_of(header);
        // The last paragraph there is for developers of the library.
        let about = about.split("COUPLING:").next().unwrap_or_default();
        // The first paragraph repeats the page's name.
        paragraphs(&mut page, about.split_once("\n\n").map_or("", |(_, rest)| rest));
        let sections = rest.find("/* ----").map_or("", |at| &rest[at..]);
        for block in blocks(sections) {
            let (comment, code) = comment_of(block);
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
        page.push_str(&format!(".SH SEE ALSO\n{see_also}"));
        page
    }
}

/// The blocks of a header: a comment at the left margin, if any, and the declarations below it.
fn blocks(header: &str) -> impl Iterator<Item = &str> {
    let groups = header.split("\n\n").map(str::trim);
    groups
        .flat_map(|mut group| {
            let mut found = Vec::new();
            while let Some(at) = group.find("\n/*") {
                let block;
                (block, group) = (&group[..at], &group[at + 1..]);
                found.push(block);
            }
            found.push(group);
            found
        })
        .filter(|block| !block.is_empty())
}

/// The indent of an example's line in a comment.
const EXAMPLE: &str = "     ";

/// The comment that a block begins with, without its marks, and the rest.
fn comment_of(block: &str) -> (String, &str) {
    let Some((comment, code)) = block.strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
    else {
        return (String::new(), block);
    };
    let lines = comment.lines().map(|line| {
        let line = line.trim().trim_start_matches('*');
        let is_example = line.starts_with(EXAMPLE) && !line.trim().is_empty();
        if is_example { line.trim_end() } else { line.trim() }
    });
    (lines.collect::<Vec<_>>().join("\n").trim().to_owned(), code.trim())
}

/// Text, its empty lines between paragraphs; a line that begins with a dot is no request.
fn paragraphs(page: &mut String, text: &str) {
    for paragraph in text.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let is_example = paragraph.starts_with(EXAMPLE);
        let escaped = paragraph.trim().replace('\\', "\\e").replace("\n.", "\n\\&.");
        let escaped = escaped.replace('-', "\\-").replace(&format!("\n{EXAMPLE}"), "\n");
        match is_example {
            true => page.push_str(&format!(".PP\n.RS\n.nf\n{escaped}\n.fi\n.RE\n")),
            false => page.push_str(&format!(".PP\n{escaped}\n")),
        }
    }
}

/// Code as it is, without the marks that are for compilers only.
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
