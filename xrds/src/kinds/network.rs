//! API group `network.v1.secapi.cloud`: networks and what is in them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Column, KindInfo, REGION_COLUMN, RefField, Scope, integer, text};
use crate::reference::Reference;

const GROUP: &str = "network.v1.secapi.cloud";
const PROVIDER: &str = "seca.network";

const NETWORK_COLUMN: Column = text("Network", ".spec.network", "Network it is in.");
const SKU_COLUMN: Column = text("Sku", ".spec.skuRef.resource", "Network SKU.").wide();

const SKU_REF: RefField = RefField::to("skuRef", &["NetworkSKU"]);

pub(crate) const NETWORK_SKU: KindInfo = KindInfo {
    kind: "NetworkSKU",
    plural: "network-skus",
    group: GROUP,
    short_names: &["nsku"],
    scope: Scope::Cluster,
    provider: PROVIDER,
    seca_kind: "network-sku",
    collection: "skus",
    catalogue: true,
    noun: "network SKU",
    references: &[],
    spec: ecp_schema::from_type::<NetworkSkuSpec>,
    status: None,
    columns: &[
        super::SKU_NAME_COLUMN,
        integer("Bandwidth", ".spec.bandwidth", "Bandwidth in Mbit/s."),
        integer("Packets", ".spec.packets", "Packets a second."),
        REGION_COLUMN,
    ],
};

pub(crate) const NETWORK: KindInfo = KindInfo {
    kind: "Network",
    plural: "networks",
    group: GROUP,
    short_names: &["snet"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "network",
    collection: "networks",
    catalogue: false,
    noun: "network",
    references: &[SKU_REF],
    spec: ecp_schema::from_type::<NetworkSpec>,
    status: Some(ecp_schema::from_type::<NetworkStatus>),
    columns: &[
        text("IPv4", ".status.cidr.ipv4", "IPv4 range."),
        text("IPv6", ".status.cidr.ipv6", "IPv6 range."),
        SKU_COLUMN,
        REGION_COLUMN,
    ],
};

pub(crate) const SUBNET: KindInfo = KindInfo {
    kind: "Subnet",
    plural: "subnets",
    group: GROUP,
    short_names: &["ssub"],
    scope: Scope::Network,
    provider: PROVIDER,
    seca_kind: "subnet",
    collection: "subnets",
    catalogue: false,
    noun: "subnet",
    references: &[
        RefField::to("routeTableRef", &["RouteTable"]).or_empty(),
        SKU_REF,
    ],
    spec: ecp_schema::from_type::<SubnetSpec>,
    status: Some(ecp_schema::from_type::<SubnetStatus>),
    columns: &[
        NETWORK_COLUMN,
        text("IPv4", ".status.cidr.ipv4", "IPv4 range."),
        text("IPv6", ".status.cidr.ipv6", "IPv6 range."),
        text("Zone", ".spec.zone", "Zone of the region."),
        REGION_COLUMN,
    ],
};

pub(crate) const ROUTE_TABLE: KindInfo = KindInfo {
    kind: "RouteTable",
    plural: "route-tables",
    group: GROUP,
    short_names: &["srt"],
    scope: Scope::Network,
    provider: PROVIDER,
    seca_kind: "routing-table",
    collection: "route-tables",
    catalogue: false,
    noun: "route table",
    references: &[RefField::to(
        "routes[].targetRef",
        &["InternetGateway", "Instance", "NIC"],
    )
    .or_text()
    .soft()],
    spec: ecp_schema::from_type::<RouteTableSpec>,
    status: Some(ecp_schema::from_type::<RouteTableStatus>),
    columns: &[NETWORK_COLUMN, REGION_COLUMN],
};

pub(crate) const INTERNET_GATEWAY: KindInfo = KindInfo {
    kind: "InternetGateway",
    plural: "internet-gateways",
    group: GROUP,
    short_names: &["igw"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "internet-gateway",
    collection: "internet-gateways",
    catalogue: false,
    noun: "internet gateway",
    references: &[],
    spec: ecp_schema::from_type::<InternetGatewaySpec>,
    status: None,
    columns: &[
        Column {
            name: "Egress-Only",
            kind: "boolean",
            path: ".spec.egressOnly",
            description: "Whether connections can only be made from inside.",
            priority: 0,
        },
        REGION_COLUMN,
    ],
};

pub(crate) const NIC: KindInfo = KindInfo {
    kind: "NIC",
    plural: "nics",
    group: GROUP,
    short_names: &["snic"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "nic",
    collection: "nics",
    catalogue: false,
    noun: "NIC",
    references: &[
        RefField::to("subnetRef", &["Subnet"]),
        RefField::to("publicIpRefs[]", &["PublicIP"]).soft(),
        RefField::to("securityGroupRefs[]", &["SecurityGroup"]),
        SKU_REF,
    ],
    spec: ecp_schema::from_type::<NicSpec>,
    status: Some(ecp_schema::from_type::<NicStatus>),
    columns: &[
        text("Address", ".status.addresses[0]", "First address."),
        text("Mac", ".status.macAddress", "MAC address."),
        text("Subnet", ".spec.subnetRef.resource", "Subnet it is in.").wide(),
        REGION_COLUMN,
    ],
};

pub(crate) const PUBLIC_IP: KindInfo = KindInfo {
    kind: "PublicIP",
    plural: "public-ips",
    group: GROUP,
    short_names: &["pip"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "public-ip",
    collection: "public-ips",
    catalogue: false,
    noun: "public IP",
    references: &[],
    spec: ecp_schema::from_type::<PublicIpSpec>,
    status: Some(ecp_schema::from_type::<PublicIpStatus>),
    columns: &[
        text("Address", ".status.ipAddress", "The address."),
        text(
            "Attached-To",
            ".status.attachedTo.resource",
            "NIC that has the address.",
        )
        .wide(),
        REGION_COLUMN,
    ],
};

pub(crate) const SECURITY_GROUP: KindInfo = KindInfo {
    kind: "SecurityGroup",
    plural: "security-groups",
    group: GROUP,
    short_names: &["ssg"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "security-group",
    collection: "security-groups",
    catalogue: false,
    noun: "security group",
    references: &[
        RefField::to("ruleRefs[]", &["SecurityGroupRule"]),
        RefField::to("rules[].sourceRef[]", SOURCES)
            .or_text()
            .soft(),
    ],
    spec: ecp_schema::from_type::<SecurityGroupSpec>,
    status: Some(ecp_schema::from_type::<SecurityGroupStatus>),
    columns: &[REGION_COLUMN],
};

pub(crate) const SECURITY_GROUP_RULE: KindInfo = KindInfo {
    kind: "SecurityGroupRule",
    plural: "security-group-rules",
    group: GROUP,
    short_names: &["ssgr"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "security-group-rule",
    collection: "security-group-rules",
    catalogue: false,
    noun: "security group rule",
    references: &[RefField::to("sourceRef[]", SOURCES).or_text().soft()],
    spec: ecp_schema::from_type::<SecurityGroupRuleSpec>,
    status: None,
    columns: &[
        text("Direction", ".spec.direction", "ingress or egress."),
        text("Protocol", ".spec.protocol", "Protocol; empty for any."),
        REGION_COLUMN,
    ],
};

/// What traffic can come from, beside addresses.
const SOURCES: &[&str] = &[
    "SecurityGroup",
    "Instance",
    "InternetGateway",
    "NIC",
    "Subnet",
];

/// A speed of network that a region offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkSkuSpec {
    /// Bandwidth in Mbit/s.
    #[schemars(range(min = 1, max = 800_000))]
    pub bandwidth: i64,
    /// Packets a second.
    #[schemars(range(min = 1, max = 200_000_000_000_i64))]
    pub packets: i64,
}

/// A range of addresses, of one IP version or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.ipv4) && self.ipv4 != '') || (has(self.ipv6) && self.ipv6 != '')",
    "message": "must have ipv4 or ipv6"
}]))]
pub struct Cidr {
    /// IPv4 range, such as 10.0.0.0/16. `0.0.0.0/16` asks for any of this size.
    #[schemars(length(max = 18), extend("x-kubernetes-validations" = [{
        "rule": "self == '' || isCIDR(self) && cidr(self).ip().family() == 4",
        "message": "must be an IPv4 range such as 10.0.0.0/16"
    }]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<String>,
    /// IPv6 range, such as fd00:1::/56. `::/56` asks for any of this size.
    #[schemars(length(max = 43), extend("x-kubernetes-validations" = [{
        "rule": "self == '' || isCIDR(self) && cidr(self).ip().family() == 6",
        "message": "must be an IPv6 range such as fd00:1::/56"
    }]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<String>,
}

/// A private network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// Addresses of the network.
    pub cidr: Cidr,
    /// More addresses of the network.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_cidrs: Option<Vec<Cidr>>,
    /// Network SKU: how fast it is.
    pub sku_ref: Reference,
}

/// Status fields of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Addresses that the network has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<Cidr>,
    /// More addresses that it has, in the order of the spec.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_cidrs: Option<Vec<Cidr>>,
}

/// A part of a network that NICs are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSpec {
    /// Addresses of the subnet, inside those of its network.
    pub cidr: Cidr,
    /// Route table that its traffic follows. With an empty `resource` it has none.
    #[schemars(schema_with = "reference_or_empty")]
    pub route_table_ref: Reference,
    /// Zone of the region. Empty for any.
    #[schemars(length(max = 32))]
    pub zone: String,
    /// Network SKU; that of the network by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku_ref: Option<Reference>,
}

/// A reference whose `resource` may be empty, as Terraform sends it for none.
fn reference_or_empty(_: &mut SchemaGenerator) -> Schema {
    let mut schema = ecp_schema::from_type::<Reference>();
    if let Some(resource) = schema
        .pointer_mut("/properties/resource")
        .and_then(serde_json::Value::as_object_mut)
    {
        resource.remove("minLength");
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// Status fields of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    /// Addresses that the subnet has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<Cidr>,
    /// Route table that its traffic follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_table_ref: Option<Reference>,
}

/// Where traffic of subnets goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTableSpec {
    /// Routes; the most specific one counts.
    #[schemars(length(min = 1, max = 1000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Route>>,
}

/// Where traffic to some addresses goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Addresses that it is for, such as 0.0.0.0/0.
    #[schemars(length(min = 1, max = 43), extend("x-kubernetes-validations" = [{
        "rule": "isCIDR(self)", "message": "must be a range of addresses such as 0.0.0.0/0"
    }]))]
    pub destination_cidr_block: String,
    /// Internet gateway, instance, NIC or IP address that the traffic goes to.
    pub target_ref: Reference,
}

/// Status fields of a route table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTableStatus {
    /// State of each route, in the order of the spec.
    #[schemars(length(max = 1000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<PartStatus>>,
}

/// State of one part of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartStatus {
    /// The state.
    pub state: crate::State,
    /// States it went through, newest first.
    #[schemars(length(max = 32))]
    pub conditions: Vec<crate::HistoryEntry>,
}

/// A way from a workspace's networks to the internet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternetGatewaySpec {
    /// Whether connections can only be made from inside.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub egress_only: bool,
}

/// A network interface card, which connects an instance to a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(oldSelf.skuRef) || (has(self.skuRef) && self.skuRef == oldSelf.skuRef)",
    "message": "skuRef cannot be changed"
}]))]
pub struct NicSpec {
    /// IP addresses inside the subnet. `0.0.0.0` and `::` ask for any; so does no address.
    #[schemars(schema_with = "addresses_schema")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// Subnet it is in.
    pub subnet_ref: Reference,
    /// Public IPs that lead to it.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip_refs: Option<Vec<Reference>>,
    /// Security groups that say which traffic it lets through.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_refs: Option<Vec<Reference>>,
    /// Network SKU; that of the subnet by default. Once set, it cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku_ref: Option<Reference>,
}

fn addresses_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 32,
        "items": {
            "type": "string",
            "minLength": 1,
            "maxLength": 39,
            "x-kubernetes-validations": [
                {"rule": "isIP(self)", "message": "must be an IP address"},
            ],
        },
    })
}

/// Status fields of a NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicStatus {
    /// IP addresses that it has.
    #[schemars(length(max = 32), inner(length(max = 39)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// MAC address.
    #[schemars(length(max = 17))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Public IPs that lead to it.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip_refs: Option<Vec<Reference>>,
}

/// An IP address on the internet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublicIpSpec {
    /// IP version.
    pub version: IpVersion,
    /// The address, if the tenant brings one along; else the cloud chooses.
    #[schemars(length(max = 39), extend("x-kubernetes-validations" = [{
        "rule": "self == '' || isIP(self)", "message": "must be an IP address"
    }]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IpVersion {
    /// Version 4.
    #[serde(rename = "IPv4")]
    V4,
    /// Version 6.
    #[serde(rename = "IPv6")]
    V6,
}

impl IpVersion {
    /// Its SECA name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// Status fields of a public IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicIpStatus {
    /// The address.
    #[schemars(length(max = 39))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// NIC that it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<Reference>,
}

/// Which traffic is let through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSpec {
    /// Rules of this group alone.
    #[schemars(length(max = 500))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<SecurityGroupRuleSpec>>,
    /// Rules that groups share.
    #[schemars(length(max = 500))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_refs: Option<Vec<Reference>>,
}

/// Status fields of a security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupStatus {
    /// State of each rule of the group alone, in the order of the spec.
    #[schemars(length(max = 500))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<PartStatus>>,
}

/// Traffic that is let through: what no rule allows is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.icmp) || !has(self.protocol) || self.protocol == 'icmp'",
        "message": "icmp is for protocol icmp only"
    },
    {
        "rule": "!has(self.ports) || !has(self.protocol) || self.protocol != 'icmp'",
        "message": "protocol icmp has no ports"
    }
]))]
pub struct SecurityGroupRuleSpec {
    /// Whether it is for connections from outside or to outside.
    pub direction: Direction,
    /// Protocol; any by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// IP version; both by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<IpVersion>,
    /// Ports; any by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Kind of ICMP message; any by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp: Option<Icmp>,
    /// Addresses, ranges or resources that the traffic comes from, or goes to if `direction` is
    /// `egress`; any by default.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<Vec<Reference>>,
    /// Free text about the rule. A value has 1024 characters at most.
    #[schemars(schema_with = "crate::envelope::annotations_schema")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<std::collections::BTreeMap<String, String>>,
}

/// Which way a connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From outside.
    Ingress,
    /// To outside.
    Egress,
}

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    /// TCP.
    #[serde(rename = "tcp")]
    Tcp,
    /// UDP.
    #[serde(rename = "udp")]
    Udp,
    /// TCP and UDP.
    #[serde(rename = "tcp+udp")]
    TcpUdp,
    /// ICMP.
    #[serde(rename = "icmp")]
    Icmp,
}

/// Ports: a range, single ones, or both. `from` or `to` alone is that one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "minProperties" = 1,
    "x-kubernetes-validations" = [{
        "rule": "!has(self.from) || !has(self.to) || self.from <= self.to",
        "message": "from must not be greater than to"
    }]
))]
pub struct Ports {
    /// First port of the range.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Last port of the range.
    #[schemars(range(min = 1, max = 65535))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Single ports.
    #[schemars(length(max = 100), inner(range(min = 1, max = 65535)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<i64>>,
}

/// A kind of ICMP message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Icmp {
    /// ICMP type.
    #[serde(rename = "type")]
    #[schemars(range(min = 0, max = 8))]
    pub kind: i64,
    /// ICMP code.
    #[schemars(range(min = 0, max = 5))]
    pub code: i64,
}
