//! Counts of operations, over all workers.

/// `Tally`, with these counts.
macro_rules! tally {
    ($($count:ident)*) => {
        /// Counts of operations.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Tally {
            $(pub(crate) $count: usize,)*
        }

        impl Tally {
            pub(crate) fn plus(self, other: Tally) -> Tally {
                Tally { $($count: self.$count + other.$count,)* }
            }
        }
    };
}
