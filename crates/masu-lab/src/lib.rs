//! The lab: variants, runs, measures and statistics, as a library without a terminal.
