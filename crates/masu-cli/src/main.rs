//! The `masu` command: arguments in, lab called, terminal out.

mod carried;

fn main() -> anyhow::Result<()> {
    println!("{}", carried::lay_out(carried::Libc::Musl)?.display());
    println!("{}", carried::lay_out(carried::Libc::Glibc)?.display());
    Ok(())
}
