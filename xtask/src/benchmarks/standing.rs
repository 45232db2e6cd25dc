//! Where masu stands in a table of times: in how many rows ahead, in which behind.
//!
//! It relies on the last column of such tables, `RATIO (LOW–HIGH) PEER`, masu against the best of the others. Patterns
//! that are there for their memory alone do not count.

use super::MEMORY_ONLY;

pub(super) struct Standing {
    /// Rows whose whole interval lies below 1.
    pub(super) ahead: usize,
    /// Rows whose interval holds 1, or that have none.
    pub(super) level: usize,
    /// Rows whose whole interval lies above 1, the worst first.
    pub(super) behind: Vec<String>,
}

impl Standing {
    /// The standing in a section's table; none where it has no such column or is not about time.
    pub(super) fn of(heading: &str, section: &str) -> Option<Standing> {
        let is_of_time = heading.contains("wall time") || heading.starts_with("Time ");
        let mut rows = section.lines().filter(|line| line.starts_with('|'));
        let is_against_best = cells(rows.next()?).last()?.starts_with("masu / best");
        if !is_of_time || !is_against_best {
            return None;
        }
        let mut standing = Standing { ahead: 0, level: 0, behind: Vec::new() };
        let mut losses: Vec<(f64, String)> = Vec::new();
        for row in rows.skip(1).map(cells) {
            let (Some(name), Some(last)) = (row.first(), row.last()) else { continue };
            if MEMORY_ONLY.contains(name) {
                continue;
            }
            match Against::read(last) {
                Some(against) if against.low > 1.0 => {
                    losses.push((against.ratio, format!("{name} {last}")));
                }
                Some(against) if against.high < 1.0 => standing.ahead += 1,
                _ => standing.level += 1,
            }
        }
        losses.sort_by(|one, other| other.0.total_cmp(&one.0));
        standing.behind = losses.into_iter().map(|(_, loss)| loss).collect();
        Some(standing)
    }
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

struct Against {
    ratio: f64,
    low: f64,
    high: f64,
}

impl Against {
    /// `1.71 (1.34–2.13) mimalloc2`.
    fn read(cell: &str) -> Option<Against> {
        let (ratio, rest) = cell.split_once(" (")?;
        let (low, rest) = rest.split_once('–')?;
        let (high, _) = rest.split_once(')')?;
        Some(Against {
            ratio: ratio.parse().ok()?,
            low: low.parse().ok()?,
            high: high.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\n| pattern | glibc, ms | masu / best peer |\n|---|---:|---:|\n\
                         | a | 1 | 0.5 (0.4–0.6) x |\n| b | 1 | 1.1 (1.05–1.2) y |\n| c | 1 | 2.0 (1.5–3) z |\n\
                         | d | 1 | 1.0 (0.9–1.1) x |\n| e | 1 | – |\n\
                         | small-program | 1 | 1.1 (1.05–1.2) y |\n";

    #[test]
    fn rows_are_ahead_level_or_behind() {
        let standing = Standing::of("Patterns: wall time", TABLE).unwrap();
        assert_eq!((standing.ahead, standing.level), (1, 2));
        assert_eq!(standing.behind, ["c 2.0 (1.5–3) z", "b 1.1 (1.05–1.2) y"]);
    }

    #[test]
    fn tables_of_memory_and_of_other_things_have_no_standing() {
        assert!(Standing::of("Patterns: peak RSS, MB", TABLE).is_none());
        assert!(Standing::of("Patterns: wall time", "| a | b |\n|---|---|\n").is_none());
        assert!(Standing::of("Patterns: wall time", "no table").is_none());
    }
}
