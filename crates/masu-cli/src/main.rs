//! The `masu` command: arguments in, lab called, terminal out.

fn main() {}
