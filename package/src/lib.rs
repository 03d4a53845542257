//! What is installed: manifests of packages, and the compositions they hold.
