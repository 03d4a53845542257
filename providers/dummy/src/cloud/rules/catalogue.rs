//! What is on offer: locations, projects, and types of things.

use super::storage::check_size;
use super::{Ask, Rules, refuse};
use crate::cloud::error::CloudError;
use crate::cloud::object::SpecOf;
use crate::cloud::specs::{
    LocationSpec, MachineTypeSpec, NetworkTypeSpec, ProjectSpec, VolumeTypeSpec,
};

impl Rules for LocationSpec {
    fn check(&self, _ask: &Ask<'_>, _old: Option<&Self>) -> Result<(), CloudError> {
        Ok(())
    }
}

impl Rules for ProjectSpec {
    fn check(&self, _ask: &Ask<'_>, _old: Option<&Self>) -> Result<(), CloudError> {
        Ok(())
    }
}

impl Rules for VolumeTypeSpec {
    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.fixed("name", old.map_or(&self.name, |old| &old.name), &self.name)?;
        check_size(self.min_size_gb)
    }
}

impl Rules for MachineTypeSpec {
    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.fixed("name", old.map_or(&self.name, |old| &old.name), &self.name)
    }
}

impl Rules for NetworkTypeSpec {
    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.fixed("name", old.map_or(&self.name, |old| &old.name), &self.name)
    }
}

/// A type of things that is known by a name.
pub(super) trait Listed: SpecOf + 'static {
    fn location(&self) -> &str;
    fn name(&self) -> &str;
}

macro_rules! listed {
    ($($spec:ty),*) => {$(
        impl Listed for $spec {
            fn location(&self) -> &str {
                &self.location
            }

            fn name(&self) -> &str {
                &self.name
            }
        }
    )*};
}

listed!(VolumeTypeSpec, MachineTypeSpec, NetworkTypeSpec);

impl<'a> Ask<'a> {
    /// The type of this name. `None` in a location where none are listed: there is every one.
    pub(super) fn listed<T: Listed>(&self, name: &str) -> Result<Option<&'a T>, CloudError> {
        let all = self
            .inner
            .of_kind(T::KIND)
            .filter(|o| o.account == self.account);
        let here = all.filter_map(|o| T::of(&o.spec));
        let mut here = here.filter(|t| t.location() == self.location).peekable();
        if here.peek().is_none() {
            return Ok(None);
        }
        match here.find(|t| t.name() == name) {
            Some(found) => Ok(Some(found)),
            None => refuse(format!(
                "unknown {} {name:?} in location {:?}",
                T::KIND.noun(),
                self.location
            )),
        }
    }
}
