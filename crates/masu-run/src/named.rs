//! Enums whose values each have a name: the value, its name and its place in the list of all stand on one line.

/// Writes an enum with `ALL`, every value in the order it is written in, and `name`.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $Enum:ident {
        $($(#[$what:meta])* $Value:ident = $name:literal,)*
    }) => {
        $(#[$about])*
        $visible enum $Enum { $($(#[$what])* $Value,)* }

        impl $Enum {
            /// Every value, in order.
            pub const ALL: [$Enum; [$($name),*].len()] = [$($Enum::$Value),*];

            /// The value's name.
            pub fn name(self) -> &'static str {
                match self { $($Enum::$Value => $name),* }
            }
        }
    };
}

/// The value of `all` that is called `text`; an error lists the names of this `kind`.
///
/// # Errors
///
/// There is no value of this name.
pub fn find<T: Copy>(
    kind: &str,
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
) -> Result<T, String> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().copied().map(name).collect();
        format!("no {kind} `{text}`; there are {}", names.join(", "))
    })
}
