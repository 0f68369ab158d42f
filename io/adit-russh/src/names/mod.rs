//! Algorithm names: the elements of the lists of [`Preferred`](crate::Preferred).

macro_rules! names {
    ($doc:literal { $($(#[$item:meta])* $constant:ident = $name:literal,)* }) => {
        use std::fmt;

        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Name(&'static str);

        $($(#[$item])* pub const $constant: Name = Name($name);)*

        /// All names, in order of preference.
        pub const ALL: &[Name] = &[$($constant),*];

        impl AsRef<str> for Name {
            fn as_ref(&self) -> &str {
                self.0
            }
        }

        impl fmt::Display for Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.0)
            }
        }

        impl<'a> TryFrom<&'a str> for Name {
            type Error = ();

            /// Returns the algorithm with this name.
            fn try_from(name: &'a str) -> Result<Self, ()> {
                ALL.iter().copied().find(|other| other.0 == name).ok_or(())
            }
        }
    };
}

pub mod cipher;
pub mod compression;
pub mod kex;
pub mod mac;
