//! What objects make of each other: who is attached to whom, and which routes and rules have an
//! effect. Worked out from what is in force, never kept.

use std::collections::BTreeSet;

use super::journal::Entry;
use super::object::{Attached, Kind, Object, Part, Relations, Spec, SpecOf};
use super::specs::{MachineSpec, NetworkInterfaceSpec, PartState, Route, RouteTableSpec, Rule};
use super::state::Inner;

/// What others make of an object.
pub(super) fn of(inner: &Inner, object: &Object) -> Relations {
    let mut relations = Relations::default();
    let id = object.id.as_str();
    match object.in_force() {
        Some(Spec::Volume(_)) => {
            let uses = |m: &MachineSpec| m.volumes().any(|v| v == id);
            let holder = holder::<MachineSpec>(inner, object, uses);
            relations.attached_to = holder.map(|(m, spec)| attached(m, &spec.display_name));
        }
        Some(Spec::NetworkInterface(spec)) => {
            let uses = |m: &MachineSpec| m.interfaces.iter().any(|i| i == id);
            let holder = holder::<MachineSpec>(inner, object, uses);
            relations.attached_to = holder.map(|(m, spec)| attached(m, &spec.display_name));
            let mine = spec.public_addresses.iter().filter(|address| {
                let address = inner.owned(&object.account, address);
                address
                    .filter(|a| a.is_usable())
                    .and_then(|a| interface_with(inner, a))
                    .is_some_and(|(interface, _)| interface.id == id)
            });
            relations.public_addresses = mine.cloned().collect();
        }
        Some(Spec::PublicAddress(_)) => {
            let holder = interface_with(inner, object);
            relations.attached_to = holder.map(|(i, spec)| attached(i, &spec.display_name));
        }
        Some(Spec::Subnet(spec)) => {
            let table = spec.route_table.as_ref();
            let table = table.and_then(|t| inner.owned(&object.account, t));
            let table = table.filter(|t| t.is_usable() && RouteTableSpec::of(&t.spec).is_some());
            relations.route_table = table.map(|t| t.id.clone());
        }
        Some(Spec::RouteTable(spec)) => {
            let routes = spec.routes.iter();
            relations.parts = routes.map(|r| part(route(inner, object, r))).collect();
        }
        Some(Spec::SecurityGroup(spec)) => {
            let own = spec.rules.iter().map(|r| part(rule(inner, object, r)));
            let shared = spec
                .security_rules
                .iter()
                .map(|id| part(shared(inner, object, id)));
            relations.parts = own.chain(shared).collect();
        }
        _ => {}
    }
    relations
}

/// Objects whose relations may change with an entry, beside the one that it is about.
pub(super) fn affected(inner: &Inner, entry: &Entry) -> BTreeSet<String> {
    let (id, new) = match entry {
        Entry::Put(object) => (&object.id, Some(object.as_ref())),
        Entry::Gone(id) => (id, None),
        Entry::Set(..) => return BTreeSet::new(),
    };
    let old = inner.objects.get(id);
    let same = |old: &Object, new: &Object| {
        old.state == new.state && old.spec == new.spec && old.was == new.was
    };
    if let (Some(old), Some(new)) = (old, new)
        && same(old, new)
    {
        return BTreeSet::new();
    }
    let both = || old.into_iter().chain(new);
    let mut affected: BTreeSet<String> = BTreeSet::new();
    for target in both().flat_map(Object::references) {
        let Some(target) = inner.objects.get(target) else {
            continue;
        };
        // An address may go to another interface that asks for it.
        if target.spec.kind() == Kind::PublicAddress {
            affected.extend(inner.users_of(target).map(|user| user.id.clone()));
        }
        affected.insert(target.id.clone());
    }
    if let Some(object) = old.or(new)
        && object.spec.kind() != Kind::Project
    {
        for user in inner.users_of(object) {
            if user.spec.kind() == Kind::SecurityRule {
                affected.extend(inner.users_of(user).map(|group| group.id.clone()));
            }
            affected.insert(user.id.clone());
        }
    }
    affected.remove(id);
    affected.retain(|id| {
        inner
            .objects
            .get(id)
            .is_some_and(|o| has_relations(o.spec.kind()))
    });
    affected
}

fn has_relations(kind: Kind) -> bool {
    match kind {
        Kind::Volume
        | Kind::NetworkInterface
        | Kind::PublicAddress
        | Kind::Subnet
        | Kind::RouteTable
        | Kind::SecurityGroup => true,
        Kind::Location
        | Kind::Project
        | Kind::VolumeType
        | Kind::MachineType
        | Kind::NetworkType
        | Kind::Image
        | Kind::Network
        | Kind::Gateway
        | Kind::SecurityRule
        | Kind::Machine => false,
    }
}

/// The first user of an object, of those that really use it.
fn holder<'a, T: SpecOf + 'a>(
    inner: &'a Inner,
    object: &'a Object,
    uses: impl Fn(&T) -> bool,
) -> Option<(&'a Object, &'a T)> {
    let users = inner.users_of(object);
    let using = users.filter_map(|user| {
        let spec = T::of(user.in_force()?)?;
        uses(spec).then_some((user, spec))
    });
    using.min_by_key(|(user, _)| (user.made_ms, &user.id))
}

/// The interface that has a public address.
fn interface_with<'a>(
    inner: &'a Inner,
    address: &'a Object,
) -> Option<(&'a Object, &'a NetworkInterfaceSpec)> {
    let uses = |i: &NetworkInterfaceSpec| i.public_addresses.contains(&address.id);
    holder(inner, address, uses)
}

fn attached(object: &Object, display_name: &str) -> Attached {
    Attached {
        id: object.id.clone(),
        display_name: display_name.into(),
    }
}

fn part(effect: Result<(), String>) -> Part {
    match effect {
        Ok(()) => Part {
            state: PartState::Active,
            reason: None,
        },
        Err(reason) => Part {
            state: PartState::Pending,
            reason: Some(reason),
        },
    }
}

fn route(inner: &Inner, of: &Object, route: &Route) -> Result<(), String> {
    match (&route.gateway, &route.machine, &route.address) {
        (Some(id), _, _) => there(inner, of, Kind::Gateway.noun(), id),
        (_, Some(id), _) => there(inner, of, Kind::Machine.noun(), id),
        (_, _, Some(_)) => Ok(()),
        (None, None, None) => Err("it has no target".into()),
    }
}

fn rule(inner: &Inner, of: &Object, rule: &Rule) -> Result<(), String> {
    let mut sources = rule.source_ids();
    sources.try_for_each(|id| there(inner, of, "source", id))
}

fn shared(inner: &Inner, of: &Object, id: &str) -> Result<(), String> {
    there(inner, of, Kind::SecurityRule.noun(), id)?;
    match inner.owned(&of.account, id).and_then(Object::in_force) {
        Some(Spec::SecurityRule(spec)) => rule(inner, of, &spec.rule),
        _ => Ok(()),
    }
}

/// Whether an object can be used, and why not.
fn there(inner: &Inner, of: &Object, noun: &str, id: &str) -> Result<(), String> {
    match inner.owned(&of.account, id) {
        Some(target) if target.is_usable() => Ok(()),
        Some(target) => Err(format!("{noun} {id} is {}", target.state.as_str())),
        None => Err(format!("{noun} {id} does not exist")),
    }
}
