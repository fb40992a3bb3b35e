//! Storage between the calls of a tool.

use kitbag_base::ByteSize;
use kitbag_config::{CallGrants, load};
use kitbag_policy::{Decision, Request, StorageGrant, StorageRequest, decide};

use crate::support::Fixture;

#[test]
fn every_printed_flag_grants_the_denied_request() {
    let check = |wanted: StorageGrant, expected: &str| {
        let fixture = Fixture::empty();
        let config = fixture.load();
        let request = Request::Storage(StorageRequest(wanted));
        let decision = decide(&config.tools["learn"].grants.value, &request);
        let Decision::Denied { missing: Some(missing), .. } = decision else { panic!("allowed") };
        let flag = config.grant_flag(&missing).unwrap();
        assert_eq!(flag, expected);
        let word = flag.strip_prefix("--grant ").unwrap().trim_matches('\'');
        let mut sources = fixture.sources();
        sources.call_grants =
            Some(CallGrants { tool: "learn".into(), grants: vec![word.to_owned()] });
        let config = load(&sources).unwrap();
        let decision = decide(&config.tools["learn"].grants.value, &request);
        assert!(matches!(decision, Decision::Allowed { .. }), "{decision:?}");
    };
    check(StorageGrant::default(), "--grant storage");
    let quota = Some(ByteSize::mib(32));
    let wanted = |keys| StorageGrant::new(quota, keys).unwrap();
    check(wanted(None), "--grant 'storage={ quota = \"32 MiB\" }'");
    check(wanted(Some(7)), "--grant 'storage={ quota = \"32 MiB\", keys = 7 }'");
}
