//! Compressors and archivers: threads that pass large buffers on.

use crate::program::Program;
use crate::soak;
use crate::text;

/// Text that makes several blocks for each of two compressing threads.
fn corpus() -> String {
    text::lines(if soak() { 1_000_000 } else { 60_000 })
}

#[test]
fn xz_with_two_threads_compresses_the_same() {
    Program::new("xz", "xz-utils")
        .arguments(["-T2", "--block-size=256KiB", "-6", "--keep", "corpus"])
        .file("corpus", corpus())
        .produces("corpus.xz")
        .same_under_masu();
}

#[test]
fn xz_with_two_threads_restores_the_same() {
    let script = "
        xz -T2 --block-size=256KiB -1 <corpus >corpus.xz
        xz -T2 -dc corpus.xz | cmp - corpus
        xz -lv corpus.xz";
    Program::script(script, "")
        .file("corpus", corpus())
        .produces("corpus.xz")
        .prints("CRC64")
        .runs("xz", "xz-utils")
        .runs("cmp", "diffutils")
        .same_under_masu();
}

#[test]
fn zstd_with_two_threads_compresses_and_restores_the_same() {
    let script = "
        zstd -q -T2 -B256KiB -12 corpus
        zstd -q -T2 -dc corpus.zst | cmp - corpus
        zstd -q -T2 --train -B1KiB corpus -o dictionary
        zstd -lv corpus.zst";
    Program::script(script, "")
        .file("corpus", corpus())
        .produces("corpus.zst")
        .produces("dictionary")
        .prints("Frames")
        .runs("zstd", "zstd")
        .same_under_masu();
}

#[test]
fn tar_packs_lists_and_unpacks_the_same() {
    let script = "
        same='--sort=name --owner=0 --group=0'
        tar $same -cf tree.tar tree
        tar -tvf tree.tar
        mkdir out
        tar -xf tree.tar -C out
        diff -r tree out/tree
        tar $same -cJf tree.tar.xz tree";
    Program::script(script, "")
        .prepare(|folder| text::tree(folder, if soak() { 300 } else { 30 }))
        .produces("tree.tar")
        .produces("tree.tar.xz")
        .prints("tree/folder 1/file-19.txt")
        .runs("tar", "tar")
        .runs("diff", "diffutils")
        .runs("xz", "xz-utils")
        .same_under_masu();
}
