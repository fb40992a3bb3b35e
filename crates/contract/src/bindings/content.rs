//! Conversions of logged messages and emitted content.

use super::host;
use crate::{Content, LogLevel, Media, Resource, ResourceBody, ResourceLink};

impl From<host::Level> for LogLevel {
    fn from(level: host::Level) -> Self {
        match level {
            host::Level::Debug => Self::Debug,
            host::Level::Info => Self::Info,
            host::Level::Notice => Self::Notice,
            host::Level::Warning => Self::Warning,
            host::Level::Error => Self::Error,
            host::Level::Critical => Self::Critical,
            host::Level::Alert => Self::Alert,
            host::Level::Emergency => Self::Emergency,
        }
    }
}

impl From<host::Media> for Media {
    fn from(media: host::Media) -> Self {
        Self { data: media.data, mime_type: media.mime_type }
    }
}

impl From<host::Resource> for Resource {
    fn from(resource: host::Resource) -> Self {
        let body = match resource.body {
            host::ResourceBody::Text(text) => ResourceBody::Text(text),
            host::ResourceBody::Blob(data) => ResourceBody::Blob(data),
        };
        Self { uri: resource.uri, mime_type: resource.mime_type, body }
    }
}

impl From<host::Link> for ResourceLink {
    fn from(link: host::Link) -> Self {
        let host::Link { uri, name, title, description, mime_type, size } = link;
        Self { uri, name, title, description, mime_type, size }
    }
}

impl From<host::Content> for Content {
    fn from(content: host::Content) -> Self {
        match content {
            host::Content::Image(media) => Self::Image(media.into()),
            host::Content::Audio(media) => Self::Audio(media.into()),
            host::Content::Resource(resource) => Self::Resource(resource.into()),
            host::Content::Link(link) => Self::Link(link.into()),
        }
    }
}

impl From<Media> for host::Media {
    fn from(media: Media) -> Self {
        Self { data: media.data, mime_type: media.mime_type }
    }
}

impl From<Resource> for host::Resource {
    fn from(resource: Resource) -> Self {
        let body = match resource.body {
            ResourceBody::Text(text) => host::ResourceBody::Text(text),
            ResourceBody::Blob(data) => host::ResourceBody::Blob(data),
        };
        Self { uri: resource.uri, mime_type: resource.mime_type, body }
    }
}

impl From<ResourceLink> for host::Link {
    fn from(link: ResourceLink) -> Self {
        let ResourceLink { uri, name, title, description, mime_type, size } = link;
        Self { uri, name, title, description, mime_type, size }
    }
}

impl From<Content> for host::Content {
    fn from(content: Content) -> Self {
        match content {
            Content::Image(media) => Self::Image(media.into()),
            Content::Audio(media) => Self::Audio(media.into()),
            Content::Resource(resource) => Self::Resource(resource.into()),
            Content::Link(link) => Self::Link(link.into()),
        }
    }
}
