//! The effect that each setting of each malloc must have, a line of `proofs.txt` each: two opposite values, the figure
//! that distinguishes them, and its bounds under either.

use std::sync::LazyLock;

/// The proof of one cell of the table.
pub(crate) struct Proof {
    pub(crate) malloc: &'static str,
    pub(crate) setting: &'static str,
    /// Two values that are each other's opposite.
    pub(crate) values: [&'static str; 2],
    /// The scene that the program plays.
    pub(crate) scene: &'static str,
    /// The name of the figure to look at.
    pub(crate) figure: &'static str,
    /// The bounds of the figure under the first and the second value.
    bounds: [&'static str; 2],
}

pub(crate) static PROOFS: LazyLock<Vec<Proof>> = LazyLock::new(|| {
    let lines = include_str!("proofs.txt").lines();
    let proofs = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    proofs.map(Proof::read).collect()
});

impl Proof {
    fn read(line: &'static str) -> Proof {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [malloc, setting, one, other, scene, figure, first, second] = words[..] else {
            panic!("no proof: {line}")
        };
        let (values, bounds) = ([one, other], [first, second]);
        Proof { malloc, setting, values, scene, figure, bounds }
    }

    /// True if the figures under the first and the second value are as they must be.
    pub(crate) fn holds(&self, first: u64, second: u64) -> bool {
        let is_within = |bound: &str, figure: u64| {
            let (sign, number) = bound.split_at(bound.find(char::is_numeric).expect("a number"));
            let digits = number.trim_end_matches(['K', 'M']);
            let unit = match &number[digits.len()..] {
                "K" => 1 << 10,
                "M" => 1 << 20,
                _ => 1,
            };
            let number = digits.parse::<u64>().expect("digits") * unit;
            match sign {
                "=" => figure == number,
                ">" => figure > number,
                ">=" => figure >= number,
                "<" => figure < number,
                "<=" => figure <= number,
                "second+" => figure == second + number,
                _ => panic!("no bound: {bound}"),
            }
        };
        is_within(self.bounds[0], first) && is_within(self.bounds[1], second)
    }

    /// Whether the kernel must give huge pages to programs that ask, and to no others.
    pub(crate) fn needs_advice(&self) -> bool {
        self.figure == "advised"
    }

    /// The figure in words, for people: those of its malloc where several have it.
    pub(crate) fn evidence(&self) -> &'static str {
        let words = |name: &str| {
            let mut lines = include_str!("figures.txt").lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let of_malloc = words(&format!("{}.{}", self.malloc, self.figure));
        of_malloc.or_else(|| words(self.figure)).expect("each figure has words")
    }
}
