//! Management policies: what a provider may do with an external resource.

/// One of the accepted sets of management policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies(u8);

/// A set of management policies that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("management policies {0:?} are set to a non-supported combination")]
pub struct PolicyError(pub Vec<String>);

const OBSERVE: u8 = 1;
const CREATE: u8 = 2;
const UPDATE: u8 = 4;
const DELETE: u8 = 8;
const LATE_INITIALIZE: u8 = 16;
const ALL: u8 = OBSERVE | CREATE | UPDATE | DELETE | LATE_INITIALIZE;

/// Accepted sets (crossplane-runtime's `defaultSupportedManagementPolicies`). `*` reads as all.
const SUPPORTED: [u8; 14] = [
    0,
    ALL,
    OBSERVE,
    OBSERVE | CREATE | UPDATE | DELETE,
    OBSERVE | CREATE | UPDATE | LATE_INITIALIZE,
    OBSERVE | CREATE | UPDATE,
    OBSERVE | CREATE | DELETE | LATE_INITIALIZE,
    OBSERVE | CREATE | LATE_INITIALIZE,
    OBSERVE | CREATE | DELETE,
    OBSERVE | CREATE,
    OBSERVE | DELETE,
    OBSERVE | UPDATE,
    OBSERVE | LATE_INITIALIZE,
    OBSERVE | UPDATE | LATE_INITIALIZE,
];

impl Policies {
    /// Everything (`["*"]`), also what an absent field means.
    pub const ALL: Self = Self(ALL);
    /// Observe only.
    pub const OBSERVE: Self = Self(OBSERVE);

    /// Reads `spec.managementPolicies`.
    ///
    /// # Errors
    /// The set is not one of the fifteen accepted ones.
    pub fn parse<S: AsRef<str>>(actions: &[S]) -> Result<Self, PolicyError> {
        let fail = || PolicyError(actions.iter().map(|a| a.as_ref().to_owned()).collect());
        if matches!(actions, [only] if only.as_ref() == "*") {
            return Ok(Self::ALL);
        }
        let mut set = 0;
        for action in actions {
            set |= match action.as_ref() {
                "Observe" => OBSERVE,
                "Create" => CREATE,
                "Update" => UPDATE,
                "Delete" => DELETE,
                "LateInitialize" => LATE_INITIALIZE,
                _ => return Err(fail()),
            };
        }
        if SUPPORTED.contains(&set) {
            Ok(Self(set))
        } else {
            Err(fail())
        }
    }

    /// All accepted sets, once each.
    pub fn supported() -> impl Iterator<Item = Self> {
        SUPPORTED.into_iter().map(Self)
    }

    /// Whether nothing may be done (an empty list).
    pub fn paused(self) -> bool {
        self.0 == 0
    }

    /// Whether an external resource may be created.
    pub fn create(self) -> bool {
        self.0 & CREATE != 0
    }

    /// Whether it may be updated.
    pub fn update(self) -> bool {
        self.0 & UPDATE != 0
    }

    /// Whether it may be deleted.
    pub fn delete(self) -> bool {
        self.0 & DELETE != 0
    }

    /// Whether absent fields of `spec.forProvider` may be filled in from it.
    pub fn late_initialize(self) -> bool {
        self.0 & LATE_INITIALIZE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_fifteen_sets_are_accepted() {
        let names = ["Observe", "Create", "Update", "Delete", "LateInitialize"];
        let mut accepted = 0;
        for mask in 0..32_u8 {
            let list: Vec<&str> = names
                .iter()
                .enumerate()
                .filter(|(i, _)| mask & (1 << i) != 0)
                .map(|(_, n)| *n)
                .collect();
            let parsed = Policies::parse(&list);
            if let Ok(set) = parsed {
                accepted += 1;
                assert_eq!(set.0, mask);
            }
            assert_eq!(parsed.is_ok(), SUPPORTED.contains(&mask), "{list:?}");
        }
        // Fourteen sets of actions, and `*`.
        assert_eq!(accepted, 14);
        assert_eq!(Policies::parse(&["*"]), Ok(Policies::ALL));
    }

    #[test]
    fn odd_lists_are_refused() {
        assert!(Policies::parse(&["*", "Observe"]).is_err());
        assert!(Policies::parse(&["observe"]).is_err());
        assert!(Policies::parse(&["Create"]).is_err());
        assert!(Policies::parse(&["Observe", "Delete", "Update"]).is_err());
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        assert_eq!(
            Policies::parse(&["Update", "Observe", "Observe"]),
            Policies::parse(&["Observe", "Update"])
        );
    }
}
