//! What a server may take.

use kitbag_contract::ByteSize;

use crate::support::{Fixture, check_problems_of};

#[test]
fn a_workspace_lowers_the_memory_of_a_server() {
    let memory = |fixture: Fixture| fixture.load().server_memory.value;
    assert_eq!(memory(Fixture::new("")), ByteSize::mib(2048));
    assert_eq!(memory(Fixture::new("[serve]\nmemory = \"1GiB\"\n")), ByteSize::mib(1024));
    let own = "[serve]\nmemory = \"8GiB\"\n";
    assert_eq!(memory(Fixture::new("").user(own)), ByteSize::mib(8192));
    let lower = Fixture::new("[serve]\nmemory = \"4GiB\"\n").user(own);
    assert_eq!(memory(lower), ByteSize::mib(4096));
}

#[test]
fn a_workspace_that_raises_it_is_refused() {
    check_problems_of(
        &Fixture::new("[serve]\nmemory = \"3GiB\"\n").user("[serve]\nmemory = \"1GiB\"\n"),
        &["C:2:10: `serve.memory` is `3 GiB`, above `1 GiB` (/t/h/config.toml:2:10), which a \
           workspace may only lower; lower it, or put `memory = \"3 GiB\"` under `[serve]` in your \
           own `/t/h/config.toml`"],
    );
    check_problems_of(
        &Fixture::new("[serve]\nmemory = \"383MiB\"\n"),
        &["C:2:10: `serve.memory` is `383 MiB`; a server needs at least `384 MiB`"],
    );
    check_problems_of(
        &Fixture::new("[serve]\nmemory = \"much\"\n"),
        &["C:2:10: `much` is not a size; write a number and a unit, such as `64MiB`"],
    );
}
