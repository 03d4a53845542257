//! What the cloud keeps.

use serde::{Deserialize, Serialize};

/// Something in the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Identity, chosen by the cloud.
    pub id: String,
    /// The client's tag; a second creation with the same tag answers with this object.
    pub tag: String,
    /// Account whose settings apply.
    pub account: String,
    /// What was asked for.
    pub spec: Spec,
    /// Where it is in its life.
    pub state: State,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: i64,
    /// Real size of a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_gb: Option<i64>,
    /// Size of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<i64>,
    /// Instance that a volume is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// When the cloud last changed the object by itself, or the object was made.
    pub drifted_ms: i64,
}

/// Where an object is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Being made.
    Creating,
    /// There.
    Active,
    /// Being changed.
    Updating,
    /// Being removed.
    Deleting,
}

impl State {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
        }
    }
}

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A place with hardware.
    Location,
    /// A group of resources.
    Project,
    /// A kind of volume.
    VolumeType,
    /// A block device.
    Volume,
    /// A copy of a volume that others can be made from.
    Image,
}

impl Kind {
    /// What ids of the kind start with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Location => "loc-",
            Self::Project => "prj-",
            Self::VolumeType => "vt-",
            Self::Volume => "vol-",
            Self::Image => "img-",
        }
    }

    /// The word for it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Project => "project",
            Self::VolumeType => "volume type",
            Self::Volume => "volume",
            Self::Image => "image",
        }
    }

    /// Entries of the catalogue are there at once; the rest takes the time that is set.
    pub fn is_catalogue(self) -> bool {
        match self {
            Self::Location | Self::VolumeType => true,
            Self::Project | Self::Volume | Self::Image => false,
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Spec {
    /// See [`Kind::Location`].
    Location {
        /// Its name.
        location: String,
    },
    /// See [`Kind::Project`].
    Project {
        /// Where.
        location: String,
        /// Name for people.
        display_name: String,
    },
    /// See [`Kind::VolumeType`].
    VolumeType {
        /// Where.
        location: String,
        /// Its name.
        name: String,
        /// Operations a second.
        iops: i64,
        /// Smallest volume.
        min_size_gb: i64,
    },
    /// See [`Kind::Volume`].
    Volume(VolumeSpec),
    /// See [`Kind::Image`].
    Image(ImageSpec),
}

/// A volume as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Where.
    pub location: String,
    /// Id of its project.
    pub project: Option<String>,
    /// Name for people.
    pub display_name: String,
    /// Size.
    pub size_gb: i64,
    /// Name of its volume type.
    pub volume_type: String,
    /// Operations a second.
    pub iops: Option<i64>,
    /// Id of the image that it starts from.
    pub source_image: Option<String>,
}

/// An image as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpec {
    /// Where.
    pub location: String,
    /// Name for people.
    pub display_name: String,
    /// Id of the volume that it is a copy of.
    pub source_volume: String,
    /// Processor.
    pub cpu_architecture: String,
    /// Firmware.
    pub boot: Option<String>,
    /// What runs at first boot.
    pub initializer: Option<String>,
}

impl Spec {
    /// The kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Location { .. } => Kind::Location,
            Self::Project { .. } => Kind::Project,
            Self::VolumeType { .. } => Kind::VolumeType,
            Self::Volume(_) => Kind::Volume,
            Self::Image(_) => Kind::Image,
        }
    }

    /// Where it is.
    pub fn location(&self) -> &str {
        match self {
            Self::Location { location }
            | Self::Project { location, .. }
            | Self::VolumeType { location, .. } => location,
            Self::Volume(volume) => &volume.location,
            Self::Image(image) => &image.location,
        }
    }
}
