//! The audit log.

use kitbag_base::ByteSize;

use crate::config::{Audit, AuditSync};
use crate::layers::origin::Sourced;
use crate::report::Report;
use crate::resolve::context::{ConfigFiles, tables};

/// The default size of the log.
const SIZE: ByteSize = ByteSize::mib(128);

/// The minimum size of the log. Each of its files then still has a few hundred lines.
const LEAST_SIZE: ByteSize = ByteSize::mib(1);

/// Returns the settings of the log from the user config. Other files have no such table.
pub(crate) fn audit(configs: &ConfigFiles<'_>, report: &mut Report) -> Audit {
    let mut audit = Audit {
        enable: Sourced::default(true),
        sync: Sourced::default(AuditSync::Batch),
        size: Sourced::default(SIZE),
        arguments: Sourced::default(false),
        required: Sourced::default(false),
    };
    let own = tables(configs, |config| config.audit.as_ref()).next();
    let Some((file, table)) = own else { return audit };
    let switches = [
        (&table.enable, &mut audit.enable),
        (&table.arguments, &mut audit.arguments),
        (&table.required, &mut audit.required),
    ];
    for (written, value) in switches {
        if let Some(written) = written {
            *value = written.at(file).sourced(written.value);
        }
    }
    if let Some(sync) = &table.sync {
        audit.sync = sync.at(file).sourced(sync.value);
    }
    if let Some(size) = &table.size {
        let at = size.at(file);
        match at.value.parse::<ByteSize>() {
            Ok(value) if value < LEAST_SIZE => {
                let problem =
                    format!("`audit.size` is `{value}`; the log needs at least `{LEAST_SIZE}`");
                report.at(at, problem);
            }
            Ok(value) => audit.size = at.sourced(value),
            Err(error) => report.at(at, error),
        }
    }
    audit
}
