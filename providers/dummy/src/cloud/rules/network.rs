//! Networks and what is in them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::{Ask, Rules, ranges, refuse, require};
use crate::cloud::error::CloudError;
use crate::cloud::object::{Choices, Kind, Object, SpecOf};
use crate::cloud::specs::{
    Cidr, GatewaySpec, IpVersion, NetworkInterfaceSpec, NetworkSpec, NetworkTypeSpec,
    PublicAddressSpec, Route, RouteTableSpec, SubnetSpec,
};
use crate::limits::{
    ADDITIONAL_CIDRS_MAX, INTERFACE_ADDRESSES_MAX, INTERFACE_PUBLIC_ADDRESSES_MAX, ROUTES_MAX,
};

impl Rules for NetworkSpec {
    fn references(&self) -> Vec<&str> {
        self.project.iter().map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        at_most(
            "additional address blocks",
            &self.additional_cidrs,
            ADDITIONAL_CIDRS_MAX,
        )?;
        ask.project(&self.project, old.map(|old| &old.project))?;
        network_type(ask, &self.network_type, old.map(|old| &old.network_type))
    }

    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        let asked = || std::iter::once(&self.cidr).chain(&self.additional_cidrs);
        let mut taken = self.taken(ask)?;
        for cidr in asked() {
            taken.extend(parse(cidr)?.into_iter().filter(|block| !is_open(block)));
        }
        // What was chosen for a request that is still there stays.
        let mut kept: Vec<(&Cidr, &Cidr)> = Vec::new();
        if let (Some(old), Some(cidr)) = (old, &choices.cidr) {
            kept.push((&old.cidr, cidr));
            kept.extend(old.additional_cidrs.iter().zip(&choices.additional_cidrs));
        }
        let mut all = Vec::new();
        for cidr in asked() {
            let same = kept.iter().position(|(asked, _)| *asked == cidr);
            let before = same.map(|at| kept.remove(at).1);
            all.push(blocks(cidr, before, |version, prefix| {
                let found = ranges::free_block(&ranges::private(version), prefix, &taken);
                if let Some(found) = found {
                    taken.push(found);
                }
                found.ok_or_else(|| format!("no private address block of /{prefix} is left"))
            })?);
        }
        if let Some(me) = ask.me {
            let inside: Vec<IpNet> = all
                .iter()
                .map(parse)
                .collect::<Result<Vec<_>, _>>()?
                .concat();
            for subnet in ask.users_of(me).filter(|u| u.spec.kind() == Kind::Subnet) {
                for block in chosen_blocks(subnet) {
                    contained(&block, &inside, || {
                        format!(
                            "subnet {} with {block} would be outside network {}",
                            subnet.id, me.id
                        )
                    })?;
                }
            }
        }
        choices.additional_cidrs = all.split_off(1);
        choices.cidr = all.pop();
        Ok(())
    }
}

impl NetworkSpec {
    /// The blocks of its project's other networks: one day they may be connected.
    fn taken(&self, ask: &Ask<'_>) -> Result<Vec<IpNet>, CloudError> {
        let me = ask.me.map(|me| &me.id);
        let others = ask.inner.of_kind(Kind::Network).filter(|other| {
            let same = |spec: &Self| spec.project == self.project && spec.location == self.location;
            Some(&other.id) != me
                && other.account == ask.account
                && Self::of(&other.spec).is_some_and(same)
        });
        Ok(others.flat_map(chosen_blocks).collect())
    }
}

impl Rules for SubnetSpec {
    fn references(&self) -> Vec<&str> {
        let all = [&self.network].into_iter().chain(&self.route_table);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        in_network(ask, &self.network, old.map(|old| &old.network))?;
        let before = old.and_then(|old| old.route_table.as_ref());
        if let Some(id) = self.route_table.as_ref().filter(|id| Some(*id) != before) {
            let table = ask.usable(Kind::RouteTable, id)?;
            let ours = |t: &RouteTableSpec| t.network == self.network;
            require(RouteTableSpec::of(&table.spec).is_some_and(ours), || {
                format!("route table {id} is not one of network {}", self.network)
            })?;
        }
        network_type(ask, &self.network_type, old.map(|old| &old.network_type))
    }

    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        let before = match old {
            Some(old) if old.cidr == self.cidr => choices.cidr.take(),
            _ => None,
        };
        if let Some(before) = before {
            choices.cidr = Some(before);
            return Ok(());
        }
        let Some(network) = ask.inner.owned(ask.account, &self.network) else {
            let text = format!("network {} does not exist", self.network);
            return Err(CloudError::NotFound(text));
        };
        let whole: Vec<IpNet> = chosen_blocks(network);
        let siblings = ask
            .users_of(network)
            .filter(|u| u.spec.kind() == Kind::Subnet);
        let taken: Vec<IpNet> = siblings.flat_map(chosen_blocks).collect();
        for block in parse(&self.cidr)?.iter().filter(|block| !is_open(block)) {
            contained(block, &whole, || {
                format!(
                    "{block} is not inside network {} ({})",
                    network.id,
                    list(&whole)
                )
            })?;
        }
        let cidr = blocks(&self.cidr, None, |_, prefix| {
            ranges::free_block(&whole, prefix, &taken).ok_or_else(|| {
                format!(
                    "network {} has no address block of /{prefix} left",
                    network.id
                )
            })
        })?;
        if let Some(me) = ask.me {
            let inside = parse(&cidr)?;
            for interface in ask.users_of(me) {
                for address in addresses_of(interface) {
                    contained(&IpNet::from(address), &inside, || {
                        let id = &interface.id;
                        format!(
                            "network interface {id} with {address} would be outside subnet {}",
                            me.id
                        )
                    })?;
                }
            }
        }
        choices.cidr = Some(cidr);
        Ok(())
    }
}

impl Rules for RouteTableSpec {
    fn references(&self) -> Vec<&str> {
        let targets = self.routes.iter().flat_map(Route::targets);
        let all = [&self.network].into_iter().chain(targets);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        in_network(ask, &self.network, old.map(|old| &old.network))?;
        at_most("routes", &self.routes, ROUTES_MAX)?;
        for route in &self.routes {
            read_block(&route.destination)?;
            if let Some(gateway) = &route.gateway {
                ask.tolerates(&[Kind::Gateway], gateway)?;
            }
            if let Some(machine) = &route.machine {
                ask.tolerates(&[Kind::Machine], machine)?;
            }
            if let Some(address) = &route.address {
                read_address(address)?;
            }
            require(route.targets().count() <= 1, || {
                format!(
                    "the route to {} has more than one target",
                    route.destination
                )
            })?;
        }
        Ok(())
    }
}

impl Route {
    fn targets(&self) -> impl Iterator<Item = &String> {
        self.gateway
            .iter()
            .chain(&self.machine)
            .chain(&self.address)
    }
}

impl Rules for GatewaySpec {
    fn references(&self) -> Vec<&str> {
        self.project.iter().map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.project(&self.project, old.map(|old| &old.project))
    }
}

impl Rules for NetworkInterfaceSpec {
    fn references(&self) -> Vec<&str> {
        let soft = self.public_addresses.iter().chain(&self.security_groups);
        let all = [&self.subnet].into_iter().chain(soft);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        match old {
            Some(old) => ask.fixed("subnet", &old.subnet, &self.subnet)?,
            None => ask.needs(Kind::Subnet, [&self.subnet], [])?,
        }
        at_most("addresses", &self.addresses, INTERFACE_ADDRESSES_MAX)?;
        let most = INTERFACE_PUBLIC_ADDRESSES_MAX;
        at_most("public addresses", &self.public_addresses, most)?;
        for id in &self.public_addresses {
            ask.tolerates(&[Kind::PublicAddress], id)?;
        }
        let groups = old.into_iter().flat_map(|old| &old.security_groups);
        ask.needs(Kind::SecurityGroup, &self.security_groups, groups)?;
        network_type(ask, &self.network_type, old.map(|old| &old.network_type))
    }

    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        if choices.mac_address.is_none() {
            choices.mac_address = Some(new_mac_address());
        }
        if old.is_some_and(|old| old.addresses == self.addresses) {
            return Ok(());
        }
        let Some(subnet) = ask.inner.owned(ask.account, &self.subnet) else {
            let text = format!("subnet {} does not exist", self.subnet);
            return Err(CloudError::NotFound(text));
        };
        let inside = chosen_blocks(subnet);
        let mut asked = Vec::new();
        for text in &self.addresses {
            asked.push(read_address(text)?);
        }
        if let (true, Some(block)) = (asked.is_empty(), inside.first()) {
            asked.push(unspecified(block));
        }
        let mut taken: BTreeSet<IpAddr> = ask.users_of(subnet).flat_map(addresses_of).collect();
        taken.extend(asked.iter().filter(|a| !a.is_unspecified()));
        // Those that the cloud chose before stay.
        let mut kept: Vec<IpAddr> = ask.me.map(addresses_of).unwrap_or_default();
        kept.retain(|address| !taken.contains(address));
        let mut addresses = Vec::new();
        for (n, address) in asked.iter().enumerate() {
            let version = ranges::version(*address);
            let block = inside.iter().find(|b| ranges::version(b.addr()) == version);
            if !address.is_unspecified() {
                let fits = |b: &&IpNet| b.contains(address) && !ranges::is_reserved(b, *address);
                require(inside.iter().any(|b| fits(&b)), || {
                    format!(
                        "{address} is no address for hosts of subnet {} ({})",
                        subnet.id,
                        list(&inside)
                    )
                })?;
                // As it was written.
                addresses.extend(self.addresses.get(n).cloned());
                continue;
            }
            let Some(block) = block else {
                let (id, version) = (&subnet.id, version.as_str());
                return refuse(format!("subnet {id} has no {version} addresses"));
            };
            let before = kept.iter().position(|a| block.contains(a));
            let chosen = match before {
                Some(at) => Some(kept.remove(at)),
                None => ranges::free_address(block, &taken),
            };
            let Some(chosen) = chosen else {
                return refuse(format!("subnet {} has no address left", subnet.id));
            };
            taken.insert(chosen);
            addresses.push(chosen.to_string());
        }
        choices.addresses = addresses;
        Ok(())
    }
}

impl Rules for PublicAddressSpec {
    fn references(&self) -> Vec<&str> {
        self.project.iter().map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.project(&self.project, old.map(|old| &old.project))?;
        ask.fixed(
            "version",
            &old.map_or(self.version, |old| old.version),
            &self.version,
        )?;
        let Some(text) = self.address.as_ref() else {
            return Ok(());
        };
        let address = read_address(text)?;
        let fits = ranges::version(address) == self.version && !address.is_unspecified();
        require(fits, || {
            format!("{address} is no {} address", self.version.as_str())
        })
    }

    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        let address = match &self.address {
            Some(own) => own.clone(),
            None if old.is_some_and(|old| old.address.is_none()) => return Ok(()),
            None => {
                let here = ask.inner.of_kind(Kind::PublicAddress);
                let here = here.filter(|o| o.spec.location() == self.location);
                let taken: BTreeSet<IpAddr> = here.flat_map(addresses_of).collect();
                let pools = ranges::public(self.version);
                let free = pools
                    .iter()
                    .find_map(|pool| ranges::free_address(pool, &taken));
                let Some(free) = free else {
                    let (version, location) = (self.version.as_str(), &self.location);
                    return refuse(format!(
                        "no public {version} address is left in location {location:?}"
                    ));
                };
                free.to_string()
            }
        };
        choices.addresses = vec![address];
        Ok(())
    }
}

/// Checks the network that something is in, which cannot be changed.
fn in_network(ask: &Ask<'_>, new: &String, old: Option<&String>) -> Result<(), CloudError> {
    match old {
        Some(old) => ask.fixed("network", old, new),
        None => ask.needs(Kind::Network, [new], []),
    }
}

fn network_type(
    ask: &Ask<'_>,
    new: &Option<String>,
    old: Option<&Option<String>>,
) -> Result<(), CloudError> {
    match new {
        Some(name) if old != Some(new) => ask.listed::<NetworkTypeSpec>(name).map(|_| ()),
        _ => Ok(()),
    }
}

fn at_most<T>(what: &str, all: &[T], max: usize) -> Result<(), CloudError> {
    let given = all.len();
    require(given <= max, || {
        format!("at most {max} {what} are possible, not {given}")
    })
}

/// The blocks for a request, of which `choose` finds those left open. `before` is what was chosen
/// for the same request.
fn blocks(
    asked: &Cidr,
    before: Option<&Cidr>,
    mut choose: impl FnMut(IpVersion, u8) -> Result<IpNet, String>,
) -> Result<Cidr, CloudError> {
    require(!parse(asked)?.is_empty(), || {
        "an address block is needed".into()
    })?;
    if let Some(before) = before {
        return Ok(before.clone());
    }
    let mut one = |text: &Option<String>| match text.as_ref().filter(|t| !t.is_empty()) {
        None => Ok(None),
        Some(text) => {
            let block = read_block(text)?;
            if !is_open(&block) {
                // As it was written.
                return Ok(Some(text.clone()));
            }
            let prefix = block.prefix_len();
            match choose(ranges::version(block.addr()), prefix) {
                Ok(found) => Ok(Some(found.to_string())),
                Err(text) => refuse(text),
            }
        }
    };
    Ok(Cidr {
        ipv4: one(&asked.ipv4)?,
        ipv6: one(&asked.ipv6)?,
    })
}

/// The blocks of a request. An empty text is none.
fn parse(cidr: &Cidr) -> Result<Vec<IpNet>, CloudError> {
    let both = [(&cidr.ipv4, IpVersion::V4), (&cidr.ipv6, IpVersion::V6)];
    let mut blocks = Vec::new();
    for (text, version) in both {
        let Some(text) = text.as_ref().filter(|t| !t.is_empty()) else {
            continue;
        };
        let block = read_block(text)?;
        require(ranges::version(block.addr()) == version, || {
            format!("{text} is no {} address block", version.as_str())
        })?;
        blocks.push(block);
    }
    Ok(blocks)
}

/// The blocks that a network or subnet has.
fn chosen_blocks(object: &Object) -> Vec<IpNet> {
    let choices = &object.choices;
    let all = choices.cidr.iter().chain(&choices.additional_cidrs);
    let texts = all.flat_map(|cidr| cidr.ipv4.iter().chain(&cidr.ipv6));
    texts.filter_map(|text| text.parse().ok()).collect()
}

fn addresses_of(object: &Object) -> Vec<IpAddr> {
    let texts = object.choices.addresses.iter();
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// Whether a block only says how large it should be.
fn is_open(block: &IpNet) -> bool {
    block.addr().is_unspecified()
}

fn unspecified(block: &IpNet) -> IpAddr {
    match block {
        IpNet::V4(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        IpNet::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    }
}

fn contained(
    block: &IpNet,
    inside: &[IpNet],
    text: impl FnOnce() -> String,
) -> Result<(), CloudError> {
    require(inside.iter().any(|whole| whole.contains(block)), text)
}

fn list(blocks: &[IpNet]) -> String {
    let texts: Vec<String> = blocks.iter().map(IpNet::to_string).collect();
    texts.join(", ")
}

fn read_block(text: &str) -> Result<IpNet, CloudError> {
    match text.parse() {
        Ok(block) => Ok(block),
        Err(_) => refuse(format!("{text:?} is no address block")),
    }
}

fn read_address(text: &str) -> Result<IpAddr, CloudError> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => refuse(format!("{text:?} is no address")),
    }
}

/// A locally administered unicast address.
fn new_mac_address() -> String {
    let random = uuid::Uuid::new_v4();
    let bytes = random.as_bytes();
    let rest: Vec<String> = bytes[..5].iter().map(|b| format!("{b:02x}")).collect();
    format!("02:{}", rest.join(":"))
}
