//! A directory in memory, with all features of a real one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::files::{Fault, Files, Identity, Kind};

/// Maximum number of links in one path, as in Linux.
const LINKS: usize = 40;

/// A directory tree. Parents are created with their first entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    nodes: BTreeMap<String, Node>,
    /// Hard links: further names, each with the first name of the file.
    names: BTreeMap<String, String>,
    /// Files that are read in place of the listed files, by path.
    exchanged: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
enum Node {
    Directory,
    File(Vec<u8>),
    Link(String),
    Device,
    Unreadable(Fault),
    Unlistable(Fault),
}

impl Memory {
    /// Creates files that contain their own path as text.
    pub(super) fn of(paths: &[&str]) -> Self {
        paths.iter().fold(Self::default(), |files, path| files.file(path, *path))
    }

    pub(super) fn file(self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.with(path, Node::File(content.into()))
    }

    pub(super) fn directory(self, path: &str) -> Self {
        self.with(path, Node::Directory)
    }

    /// Adds a link like `ln -s`: relative to its own directory.
    pub(super) fn link(self, path: &str, target: &str) -> Self {
        self.with(path, Node::Link(target.to_owned()))
    }

    /// Adds another name of a file.
    pub(super) fn hard_link(mut self, path: &str, file: &str) -> Self {
        self.names.insert(path.to_owned(), file.to_owned());
        let node = self.nodes[file].clone();
        self.with(path, node)
    }

    /// Replaces a file by another file when it is read.
    pub(super) fn exchanged(mut self, path: &str, file: &str) -> Self {
        self.exchanged.insert(path.to_owned(), file.to_owned());
        self
    }

    pub(super) fn device(self, path: &str) -> Self {
        self.with(path, Node::Device)
    }

    pub(super) fn unreadable(self, path: &str, fault: &'static str) -> Self {
        self.with(path, Node::Unreadable(Fault(fault)))
    }

    pub(super) fn unlistable(self, path: &str, fault: &'static str) -> Self {
        self.with(path, Node::Unlistable(Fault(fault)))
    }

    fn with(mut self, path: &str, node: Node) -> Self {
        for (slash, _) in path.match_indices('/') {
            self.nodes.entry(path[..slash].to_owned()).or_insert(Node::Directory);
        }
        self.nodes.insert(path.to_owned(), node);
        self
    }

    /// Follows all links of a path. As in WASI, an absolute target always leads outside.
    fn resolve(&self, path: &str) -> Result<String, Fault> {
        let mut ahead: Vec<&str> = path.rsplit('/').collect();
        let mut done = String::new();
        let mut links = 0;
        while let Some(component) = ahead.pop() {
            let parent = done.len();
            match component {
                "" | "." => continue,
                ".." if done.is_empty() => return Err(Fault::NOT_PERMITTED),
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                component if done.is_empty() => done.push_str(component),
                component => done.extend(["/", component]),
            }
            match self.nodes.get(&done).ok_or(Fault::NO_ENTRY)? {
                Node::Link(_) if links == LINKS => return Err(Fault("loop")),
                Node::Link(target) if target.starts_with('/') => return Err(Fault::NOT_PERMITTED),
                Node::Link(target) => {
                    links += 1;
                    done.truncate(parent);
                    ahead.extend(target.rsplit('/'));
                }
                _ => {}
            }
        }
        Ok(done)
    }

    fn node(&self, path: &str) -> Result<&Node, Fault> {
        match self.resolve(path)?.as_str() {
            "" => Ok(self.nodes.get("").unwrap_or(&Node::Directory)),
            path => self.nodes.get(path).ok_or(Fault::NO_ENTRY),
        }
    }
}

impl Node {
    fn kind(&self) -> Kind {
        match self {
            Self::File(_) | Self::Unreadable(_) => Kind::File,
            Self::Directory | Self::Unlistable(_) => Kind::Directory,
            Self::Link(_) => Kind::Link,
            Self::Device => Kind::Other,
        }
    }
}

impl Files for Memory {
    fn list(
        &self,
        directory: &str,
        visit: &mut dyn FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        match self.node(directory)? {
            Node::Unlistable(fault) => return Err(*fault),
            Node::Directory => {}
            _ => return Err(Fault("not-directory")),
        }
        let directory = self.resolve(directory)?;
        let start = if directory.is_empty() { directory } else { format!("{directory}/") };
        let inside = self.nodes.range(start.clone()..).map_while(|(path, node)| {
            let rest = path.strip_prefix(&start)?;
            Some((rest, node))
        });
        let entries: Vec<_> =
            inside.filter(|(name, _)| !name.is_empty() && !name.contains('/')).collect();
        // In reverse: the order of a directory is arbitrary.
        for (name, node) in entries.into_iter().rev() {
            if visit(name, node.kind()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn names(&self, file: &str) -> Result<u64, Fault> {
        let file = self.resolve(file)?;
        let first = self.names.get(&file).unwrap_or(&file);
        Ok(1 + self.names.values().filter(|name| *name == first).count() as u64)
    }

    fn target(&self, link: &str) -> Result<Kind, Fault> {
        Ok(self.node(link)?.kind())
    }

    fn link(&self, path: &str) -> Option<String> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.resolve(parent).ok()?;
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        match self.nodes.get(&path)? {
            Node::Link(target) => Some(target.clone()),
            _ => None,
        }
    }

    fn size(&self, file: &str) -> Result<u64, Fault> {
        match self.node(file)? {
            Node::File(content) => Ok(content.len() as u64),
            _ => Err(Fault("is-directory")),
        }
    }

    fn identity(&self, path: &str) -> Result<Identity, Fault> {
        let path = self.resolve(path)?;
        let path = self.names.get(&path).unwrap_or(&path);
        Ok((self.nodes.range(..=path.clone()).count() as u64, 0))
    }

    fn read(&self, file: &str, limit: usize) -> Result<(Identity, Vec<u8>), Fault> {
        // Simulates another program that replaced the file after the topic was listed.
        let file = self.exchanged.get(file).map_or(file, String::as_str);
        match self.node(file)? {
            Node::File(content) => {
                let content = content[..content.len().min(limit)].to_owned();
                Ok((self.identity(file)?, content))
            }
            Node::Unreadable(fault) => Err(*fault),
            _ => Err(Fault("is-directory")),
        }
    }
}
