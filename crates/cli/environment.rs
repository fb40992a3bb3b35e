//! Environment variables in the help.

/// The meaning of each variable, at the end of the help.
pub(crate) const HELP: &str = "\
Environment:
  KITBAG_WORKSPACE       the workspace, like --workspace
  KITBAG_CONFIG          your user config [default: $XDG_CONFIG_HOME/kitbag/config.toml]
  KITBAG_CACHE_DIR       cache of compiled tools [default: $XDG_CACHE_HOME/kitbag]
  KITBAG_STATE_DIR       trust, audit log, data of tools [default: $XDG_STATE_HOME/kitbag]
  KITBAG_TRUST_WORKSPACE 1 trusts the workspace, like --trust-workspace
  KITBAG_PASSPHRASE      the passphrase of the store of secrets, if it has one
  KITBAG_LIMITS_MEMORY   the limits of every tool, like the options of `kitbag run`
  KITBAG_LIMITS_TIME
  KITBAG_LIMITS_OUTPUT
  KITBAG_LIMITS_WRITTEN
  KITBAG_LIMITS_REQUESTS
  KITBAG_LIMITS_TOOL_CALLS
  KITBAG_LIMITS_FUEL
  KITBAG_LIMITS_COMPILE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_every_variable() {
        let shown = HELP.split_whitespace().filter(|word| word.starts_with("KITBAG_"));
        let (mut shown, mut known) = (shown.collect::<Vec<_>>(), kitbag::config::VARIABLES);
        shown.sort_unstable();
        known.sort_unstable();
        assert_eq!(shown, known);
    }
}
