//! The kinds that users make, as the contract has them (sections 1.2, 2.2, 2.4).

/// Where resources of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Tenant,
    Workspace,
    Network,
}

/// A kind that users make.
#[derive(Debug)]
pub(crate) struct Kind {
    /// `metadata.kind`.
    pub(crate) name: &'static str,
    pub(crate) provider: &'static str,
    pub(crate) collection: &'static str,
    pub(crate) scope: Scope,
    /// What must be there before one can be made, in order.
    pub(crate) needs: &'static [&'static Kind],
    /// What is referred to by a spec that has every field, beside `needs`, in order.
    pub(crate) refers: &'static [&'static Kind],
    /// Name of the one that others refer to.
    pub(crate) sample: &'static str,
}

impl Kind {
    /// Whether its resources are in a region.
    pub(crate) fn regional(&self) -> bool {
        self.provider != "seca.authorization"
    }
}

macro_rules! kinds {
    ($($id:ident = $name:literal $provider:literal $collection:literal $scope:ident
        $sample:literal needs $needs:expr, refers $refers:expr;)*) => {
        $(pub(crate) static $id: Kind = Kind {
            name: $name,
            provider: $provider,
            collection: $collection,
            scope: Scope::$scope,
            needs: &$needs,
            refers: &$refers,
            sample: $sample,
        };)*

        /// All of them, each after those that it needs.
        pub(crate) static KINDS: &[&Kind] = &[$(&$id),*];
    };
}

kinds! {
    ROLE = "role" "seca.authorization" "roles" Tenant "role" needs [], refers [];
    ROLE_ASSIGNMENT = "role-assignment" "seca.authorization" "role-assignments" Tenant "grant"
        needs [&ROLE], refers [&WORKSPACE];
    WORKSPACE = "workspace" "seca.workspace" "workspaces" Tenant "ws" needs [], refers [];
    BLOCK_STORAGE = "block-storage" "seca.storage" "block-storages" Workspace "disk"
        needs [&WORKSPACE], refers [&BLOCK_STORAGE, &IMAGE];
    IMAGE = "image" "seca.storage" "images" Tenant "image"
        needs [&WORKSPACE, &BLOCK_STORAGE], refers [];
    NETWORK = "network" "seca.network" "networks" Workspace "net" needs [&WORKSPACE], refers [];
    INTERNET_GATEWAY = "internet-gateway" "seca.network" "internet-gateways" Workspace "gw"
        needs [&WORKSPACE], refers [];
    ROUTE_TABLE = "routing-table" "seca.network" "route-tables" Network "rt"
        needs [&WORKSPACE, &NETWORK, &INTERNET_GATEWAY], refers [];
    SUBNET = "subnet" "seca.network" "subnets" Network "sn"
        needs [&WORKSPACE, &NETWORK, &INTERNET_GATEWAY, &ROUTE_TABLE], refers [];
    PUBLIC_IP = "public-ip" "seca.network" "public-ips" Workspace "pip"
        needs [&WORKSPACE], refers [];
    SECURITY_GROUP_RULE = "security-group-rule" "seca.network" "security-group-rules" Workspace
        "rule" needs [&WORKSPACE], refers [];
    SECURITY_GROUP = "security-group" "seca.network" "security-groups" Workspace "group"
        needs [&WORKSPACE], refers [&SECURITY_GROUP_RULE];
    NIC = "nic" "seca.network" "nics" Workspace "nic"
        needs [&WORKSPACE, &NETWORK, &INTERNET_GATEWAY, &ROUTE_TABLE, &SUBNET],
        refers [&PUBLIC_IP, &SECURITY_GROUP_RULE, &SECURITY_GROUP];
    INSTANCE = "instance" "seca.compute" "instances" Workspace "vm"
        needs [&WORKSPACE, &BLOCK_STORAGE],
        refers [&NETWORK, &INTERNET_GATEWAY, &ROUTE_TABLE, &SUBNET, &NIC, &SECURITY_GROUP_RULE,
            &SECURITY_GROUP];
}
