//! Enums whose values each have a name: the value, its name and its place in the list of all stand on one line.

/// Writes an enum with `ALL`, every value in the order it is written in, and `name`. `enum Form as "form"` is read back from
/// a name; an error lists the names of this kind.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $Enum:ident $(as $kind:literal)? {
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

        $(impl std::str::FromStr for $Enum {
            type Err = String;

            fn from_str(text: &str) -> Result<$Enum, String> {
                $Enum::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
                    let names = $Enum::ALL.map($Enum::name).join(", ");
                    format!(concat!("no ", $kind, " `{}`; there are {}"), text, names)
                })
            }
        })?
    };
}
