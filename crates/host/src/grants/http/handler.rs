//! `wasi:http/outgoing-handler`, with the handle of a request's options released.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, FutureIncomingResponse, Host as _, OutgoingRequest, RequestOptions,
};

use crate::call::state::State;

type Handed = (Resource<OutgoingRequest>, Option<Resource<RequestOptions>>);
type Answer = Result<Resource<FutureIncomingResponse>, ErrorCode>;

/// Links the interface.
///
/// The guest transfers the options with the call. The implementation of `wasmtime-wasi-http`
/// copies them and leaves the original in its table, where each would use one of the call's
/// handles until the call ends.
pub(crate) fn add_handler_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("wasi:http/outgoing-handler@0.2.0")?;
    instance.func_wrap(
        "handle",
        |mut store: StoreContextMut<'_, State>, (request, options): Handed| {
            let given = options.as_ref().map(Resource::rep);
            let mut http = store.data_mut().http();
            let response = http.handle(request, options);
            if let Some(rep) = given {
                http.table.delete(Resource::<RequestOptions>::new_own(rep))?;
            }
            let answer: Answer = match response {
                Ok(response) => Ok(response),
                Err(error) => Err(http.convert_error_code(error)?),
            };
            Ok((answer,))
        },
    )
}
