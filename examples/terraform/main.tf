# One of each of the thirteen resource types: a web server in a network of its own, and who may change it.

terraform {
  required_version = ">= 1.5"

  required_providers {
    seca = {
      source = "eu-sovereign-cloud/seca"
    }
  }
}

variable "endpoint" {
  type        = string
  default     = "http://127.0.0.1:8080"
  description = "Where the SECA API is, without /providers."
}

variable "token" {
  type        = string
  sensitive   = true
  description = "Bearer token: what is in .ecp/token."
}

variable "region" {
  type    = string
  default = "region-1"
}

variable "tenant" {
  type    = string
  default = "acme"
}

variable "env" {
  type        = string
  default     = "dev"
  description = "Label of everything."
}

variable "data_size_gb" {
  type        = number
  default     = 50
  description = "Size of the data volume. It can grow."
}

variable "web_port" {
  type    = number
  default = 443
}

provider "seca" {
  token  = var.token
  tenant = var.tenant
  region = var.region

  global_providers = {
    region_v1        = "${var.endpoint}/providers/seca.region"
    authorization_v1 = "${var.endpoint}/providers/seca.authorization"
  }

  # Seconds. The default delay of 30 is slept before and after every single change.
  retry = {
    delay    = 0
    interval = 0.05
  }
}

locals {
  labels = {
    env = var.env
  }
}

# What is on offer. A resource may also name a SKU as it is: sku_id = "RD500".

data "seca_region" "here" {
  name = var.region
}

data "seca_storage_sku" "disk" {
  name = "RD500"
}

data "seca_network_sku" "network" {
  name = "N10K"
}

data "seca_instance_sku" "server" {
  name = "DXS"
}

# Everything but images, roles and role assignments is in a workspace. Its name is the workspace_id: not its id,
# which is a URN.
resource "seca_workspace" "web" {
  name   = "web"
  labels = local.labels
}

# A network needs both families: with one of them the provider replaces it when anything about it changes.
resource "seca_network" "web" {
  name         = "web"
  workspace_id = seca_workspace.web.name
  sku_id       = data.seca_network_sku.network.id
  labels       = local.labels

  cidr = {
    ipv4 = "10.0.0.0/16"
    ipv6 = "fd00:0:0:1::/64"
  }
}

resource "seca_internet_gateway" "out" {
  name         = "out"
  workspace_id = seca_workspace.web.name
  egress_only  = false
  labels       = local.labels
}

resource "seca_route_table" "web" {
  name         = "web"
  workspace_id = seca_workspace.web.name
  network_id   = seca_network.web.name
  labels       = local.labels

  routes = [
    {
      destination_cidr_block = "0.0.0.0/0"
      target_id              = seca_internet_gateway.out.id
    },
  ]
}

resource "seca_subnet" "front" {
  name           = "front"
  workspace_id   = seca_workspace.web.name
  network_id     = seca_network.web.name
  route_table_id = seca_route_table.web.id
  labels         = local.labels

  cidr = {
    ipv4 = "10.0.1.0/24"
    ipv6 = "fd00:0:0:1:1::/80"
  }
}

# A rule that has ports needs from, to and list, and a rule needs source_refs: the provider fills in what is
# missing, and then finds that it was not asked for.
resource "seca_security_group" "web" {
  name         = "web"
  workspace_id = seca_workspace.web.name
  labels       = local.labels

  rules = [
    {
      direction   = "ingress"
      protocol    = "tcp"
      source_refs = ["0.0.0.0/0"]
      ports = {
        from = var.web_port
        to   = var.web_port
        list = [80]
      }
    },
  ]
}

resource "seca_public_ip" "web" {
  name         = "web"
  workspace_id = seca_workspace.web.name
  version      = "IPv4"
  labels       = local.labels
}

resource "seca_nic" "web" {
  name         = "web"
  workspace_id = seca_workspace.web.name
  subnet_id    = seca_subnet.front.id
  addresses    = ["10.0.1.10"]
  labels       = local.labels
}

resource "seca_block_storage" "boot" {
  name         = "boot"
  workspace_id = seca_workspace.web.name
  sku_id       = data.seca_storage_sku.disk.id
  size_gb      = 50
  labels       = local.labels
}

resource "seca_block_storage" "data" {
  name         = "data"
  workspace_id = seca_workspace.web.name
  sku_id       = "RD100"
  size_gb      = var.data_size_gb
  labels       = local.labels
}

resource "seca_instance" "web" {
  name              = "web"
  workspace_id      = seca_workspace.web.name
  sku_id            = data.seca_instance_sku.server.id
  zone              = data.seca_region.here.available_zones[0]
  primary_nic_id    = seca_nic.web.id
  security_group_id = seca_security_group.web.id
  labels            = local.labels

  boot_volume = {
    device_id = seca_block_storage.boot.id
  }

  data_volumes = [
    {
      device_id = seca_block_storage.data.id
    },
  ]
}

resource "seca_image" "golden" {
  name             = "golden"
  block_storage_id = seca_block_storage.boot.id
  cpu_architecture = "amd64"
  labels           = local.labels
}

resource "seca_role" "operator" {
  name   = "operator"
  labels = local.labels

  permissions = [
    {
      provider  = "seca.compute"
      resources = ["instances/*"]
      verb      = var.env == "prod" ? ["get", "list"] : ["get", "list", "put", "post"]
    },
  ]
}

# A scope that is left out is any: here any region.
resource "seca_role_assignment" "operators" {
  name   = "operators"
  subs   = ["dana@example.com"]
  roles  = [seca_role.operator.name]
  labels = local.labels

  scopes = [
    {
      tenants    = [var.tenant]
      workspaces = [seca_workspace.web.name]
    },
  ]
}

output "server" {
  value = seca_instance.web.id
}

output "public_address" {
  value = seca_public_ip.web.ip_address
}
