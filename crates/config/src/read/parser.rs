//! Parsing of the files that were read.

use std::path::Path;

use kitbag_contract::ToolName;

use super::input::FoundScript;
use super::texts::Texts;
use crate::format::invalid_keys::InvalidKeys;
use crate::format::key::KeyPath;
use crate::format::parse::{Form, parse};
use crate::format::schema::{
    OWN_KEYS, json_schema, manifest_schema, script_schema, workspace_schema,
};
use crate::format::span::Written;
use crate::format::{ConfigFile, ScriptConfig, ToolConfig};
use crate::read::file::{Layer, SourceFile};
use crate::read::lock::Lock;
use crate::read::script;
use crate::report::text::user_only;
use crate::report::{Piece, Problem, Report};

pub(super) struct Parser<'a> {
    pub(super) own_file: Option<&'a Path>,
    pub(super) invalid: InvalidKeys,
    pub(super) is_complete: bool,
    pub(super) report: &'a mut Report,
}

impl Parser<'_> {
    /// Adds the problems of files that take effect.
    pub(super) fn take(&mut self, texts: Texts) {
        self.is_complete &= texts.is_complete;
        self.report.append(texts.report);
    }

    /// Returns the settings of a file. If it cannot be understood, it has none.
    pub(super) fn config(&mut self, file: &SourceFile) -> ConfigFile {
        let is_own = file.layer() == Layer::User;
        let form = Form {
            base: &KeyPath::ROOT,
            schema: if is_own { json_schema } else { workspace_schema },
            misplaced: if is_own { Vec::new() } else { self.misplaced() },
        };
        let before = self.report.enter(Piece::File(None));
        let config = parse(file, &form, self.report, &mut self.invalid);
        self.report.enter(before);
        config.unwrap_or_else(|| {
            self.is_complete = false;
            self.report.is_of_text(file);
            ConfigFile::default()
        })
    }

    /// Returns the records of a lock file. If it cannot be understood, it has none.
    pub(super) fn lock(&mut self, file: &SourceFile) -> Lock {
        let before = self.report.enter(Piece::Lock);
        let lock = Lock::of_file(file, self.report, &mut InvalidKeys::default());
        self.report.enter(before);
        self.is_complete &= lock.is_some();
        lock.unwrap_or_default()
    }

    pub(super) fn manifest(&mut self, file: &SourceFile, name: &ToolName) -> Option<ToolConfig> {
        let base = KeyPath::ROOT.key("tools");
        let base = base.key(name.as_str());
        let mut misplaced = self.misplaced();
        // A tool also has this key.
        misplaced.retain(|(key, _)| *key != "approve");
        let form = Form { base: &base, schema: manifest_schema, misplaced };
        let before = self.report.enter(Piece::Tool(name.to_string()));
        let config = parse(file, &form, self.report, &mut self.invalid);
        self.report.enter(before);
        self.is_complete &= config.is_some();
        config
    }

    pub(super) fn script(
        &mut self,
        file: SourceFile,
        name: &ToolName,
        is_named: bool,
        keep: &mut impl FnMut(SourceFile) -> usize,
    ) -> FoundScript {
        // A script that the caller names by its path must be valid.
        let piece = if is_named { Piece::Everything } else { Piece::Tool(name.to_string()) };
        let before = self.report.enter(piece);
        let (path, shown) = (file.path().to_owned(), file.shown().clone());
        let header = script::header(file.text()).unwrap_or_else(|(range, problem)| {
            self.report.span(&file, range.into(), problem);
            self.is_complete = false;
            None
        });
        let docstring = script::docstring(file.text());
        let header = header.map(|header| file.header(header));
        let (text, mut says) = (keep(file), Vec::new());
        if let Some((range, docstring)) = docstring {
            let description = Some(Written { value: docstring, span: range.into() });
            says.push((text, ToolConfig { description, ..ToolConfig::default() }));
        }
        let header = header.and_then(|file| {
            let base = KeyPath::ROOT.key("tools");
            let base = base.key(name.as_str());
            let form = Form { base: &base, schema: script_schema, misplaced: Vec::new() };
            let config: Option<ScriptConfig> = parse(&file, &form, self.report, &mut self.invalid);
            self.is_complete &= config.is_some();
            let (mut config, file) = (config?, keep(file));
            says.push((file, config.take_said()));
            Some((file, config))
        });
        self.report.enter(before);
        FoundScript { path, shown, is_named, file: Some(text), says, header }
    }

    /// Returns the keys that a file of the workspace must not have, each with its problem.
    fn misplaced(&self) -> Vec<(&'static str, Problem)> {
        OWN_KEYS.map(|key| (key, user_only(key, self.own_file))).into()
    }
}
