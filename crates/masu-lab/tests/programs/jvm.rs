//! Java: the virtual machine's own memory, its compiler threads, and native memory of programs.

use crate::program::Program;
use crate::soak;

/// `/tmp/hsperfdata_*` is shared by all virtual machines of a user: we leave none there.
const NO_SHARED_FILE: &str = "-XX:-UsePerfData";

#[test]
fn java_threads_compute_the_same() {
    Program::new("java", "openjdk-17-jdk-headless")
        .arguments([NO_SHARED_FILE, "-Xmx512m", "Tour.java", if soak() { "100" } else { "4" }])
        .file("Tour.java", include_str!("scripts/Tour.java"))
        .prints("all threads are done")
        .same_under_masu();
}

#[test]
fn javac_makes_the_same_classes() {
    Program::new("javac", "openjdk-17-jdk-headless")
        .arguments(["-J-XX:-UsePerfData", "-g", "-Xlint:all", "-d", "classes", "Tour.java"])
        .file("Tour.java", include_str!("scripts/Tour.java"))
        .produces("classes/Tour.class")
        .same_under_masu();
}
