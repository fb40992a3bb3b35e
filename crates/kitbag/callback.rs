//! The program's callback for questions.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use kitbag_config::{Origin, Sourced};
use kitbag_contract::{Answer, AnswerError, Question};
use kitbag_toolbox::{FrontEnd, Reply};

/// The callback of [`Builder::on_question`](crate::Builder::on_question).
pub(crate) type OnQuestion =
    Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send>> + Send + Sync>;

/// Passes questions to the callback.
pub(crate) struct Callback(pub(crate) Option<OnQuestion>);

impl FrontEnd for Callback {
    type Abort = Infallible;

    async fn ask(
        &mut self,
        question: &Question,
        _: Option<&AnswerError>,
    ) -> Result<Reply, Infallible> {
        let answer = match &self.0 {
            Some(ask) => ask(question.clone()).await,
            None => None,
        };
        Ok(match answer {
            Some(value) => Reply::Answer(Sourced { value, origin: Origin::Caller }),
            None => Reply::NobodyToAsk,
        })
    }
}
