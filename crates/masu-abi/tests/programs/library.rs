//! The `libmasu.so` under test: the release build, made once for all tests of this file.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::doors::Doors;

/// The library and its doors.
pub(crate) fn doors() -> &'static Doors {
    static DOORS: OnceLock<Doors> = OnceLock::new();
    DOORS.get_or_init(|| {
        // A folder of its own, so that this build never waits for the one that runs the tests.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libmasu");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--package", "masu-abi", "--target-dir"])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_remove("LD_PRELOAD")
            .status()
            .expect("run cargo");
        assert!(status.success(), "libmasu.so does not build: {status}");
        Doors::of(&target.join("release/libmasu.so").canonicalize().expect("find libmasu.so"))
    })
}
