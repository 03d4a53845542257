//! Roles and role assignments: they are the control plane's alone, and no cloud has them.

use ecp_meta::names;
use ecp_xrds::{RoleAssignmentSpec, RoleSpec};

use super::{Draft, Obstacle, kind};
use crate::needs::Found;

pub(super) fn role(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let _: RoleSpec = draft.spec()?;
    draft.owner.as_ref().map_err(Clone::clone)?;
    Ok(())
}

/// Roles that do not exist give nothing; the assignment counts for the others.
pub(super) fn role_assignment(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: RoleAssignmentSpec = draft.spec()?;
    let role = kind("Role")?;
    for name in &spec.roles {
        // What cannot be a name is not asked for.
        let missing = !names::is_dotted_name(name)
            || Found::Missing
                == draft.needs.by_name(
                    &format!("role-{name}"),
                    &role.gvk(),
                    draft.xr.namespace,
                    &ecp_xrds::object_name(role, name),
                );
        if missing {
            draft.plan.lacking.push(format!(
                "spec.roles[]: role {name} does not exist, so it has no effect"
            ));
        }
    }
    draft.owner.as_ref().map_err(Clone::clone)?;
    Ok(())
}
