//! Misuses, each in a child process that must end with a message.

/// A test for each misuse, with code that runs before and after it, and the test that runs them.
macro_rules! wrong {
    (
        $test:ident
        before($before:stmt)
        after($after:expr)
        $($name:ident($message:expr) { $($wrong:tt)* })*
    ) => {
        $(
            #[test]
            #[ignore = "a misuse; run by the test of all"]
            fn $name() {
                $before
                // SAFETY: None: this is the misuse.
                unsafe { $($wrong)* }
                $after;
            }
        )*

        #[test]
        fn $test() {
            for (name, message) in [$((stringify!($name), $message)),*] {
                let name = match module_path!().split_once("::") {
                    Some((_, module)) => format!("{module}::{name}"),
                    None => String::from(name),
                };
                let output = $crate::alone::again(&name).output().expect("it starts again");
                let printed = String::from_utf8_lossy(&output.stderr);
                assert!(!output.status.success() && printed.contains(message), "{name}: {printed}");
            }
        }
    };
}
