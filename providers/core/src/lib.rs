//! Managed resources that every cloud needs: workspace namespaces.
