//! The shapes a profile can be shown in.

use std::path::Path;

use masu_run::named;

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Shape as "format" {
        /// A table for the terminal.
        Text = "text",
        /// Folded stacks, which flame-graph tools read.
        Folded = "folded",
        /// A flame graph: one SVG file that needs no other file.
        Flame = "svg",
        /// The JSON of speedscope.app: a sampled profile whose weights are the counted values.
        Speedscope = "speedscope",
        /// pprof's `profile.proto` with names in it, compressed by gzip.
        Pprof = "pprof",
    }
}

impl Shape {
    /// The shape that the ending of a file's name asks for.
    pub fn of_file(path: &Path) -> Option<Shape> {
        match path.extension()?.to_str()? {
            // pprof's own tools write this ending; the others are not compressed.
            "gz" => {
                Shape::of_file(Path::new(path.file_stem()?)).filter(|shape| *shape == Shape::Pprof)
            }
            "txt" => Some(Shape::Text),
            "folded" => Some(Shape::Folded),
            "svg" => Some(Shape::Flame),
            "json" => Some(Shape::Speedscope),
            "pb" | "pprof" => Some(Shape::Pprof),
            _ => None,
        }
    }
}
