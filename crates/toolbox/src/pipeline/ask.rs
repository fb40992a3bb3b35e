//! Questions to the front end.

use kitbag_config::Origin;
use kitbag_contract::{AnswerError, ApprovalRequest, Question};

use crate::approval;
use crate::call::context::{FrontEnd, Reply};
use crate::error::ToolboxError;

/// Takes an answer from the front end, and asks again if the answer does not fit.
///
/// # Errors
///
/// [`ToolboxError::Answer`] if no attempt is left, [`ToolboxError::Declined`] if the person does
/// not answer.
pub(super) async fn ask<F: FrontEnd>(
    front_end: &mut F,
    question: &Question,
) -> Result<AskResult<F::Abort>, ToolboxError> {
    let mut rejected = None;
    for attempt in 1.. {
        let reply = match front_end.ask(question, rejected.as_ref()).await {
            Ok(reply) => reply,
            Err(refusal) => return Ok(AskResult::Refused(refusal)),
        };
        let answer = match reply {
            Reply::Answer(answer) if may_answer(question, &answer.origin) => answer,
            Reply::Declined | Reply::Dismissed if question.approval.is_some() => {
                let no = ApprovalRequest::NO.into();
                return Ok(AskResult::Answered(approval::answered(&no, &Origin::Caller)));
            }
            Reply::NobodyToAsk if question.approval.is_some() => {
                return Ok(AskResult::Answered(approval::nobody()));
            }
            Reply::Answer(_) | Reply::Unanswered | Reply::NobodyToAsk => break,
            Reply::Declined | Reply::Dismissed => {
                return Err(ToolboxError::Declined {
                    question: question.id.clone(),
                    text: question.text.trim_end().to_owned(),
                    is_dismissed: reply == Reply::Dismissed,
                });
            }
        };
        match question.answer_type.check(&answer.value) {
            Ok(checked) if question.approval.is_some() => {
                return Ok(AskResult::Answered(approval::answered(&checked, &answer.origin)));
            }
            Ok(checked) => return Ok(AskResult::Answered(checked)),
            Err(source) if attempt >= F::ATTEMPTS => {
                let (question, origin) = (question.id.clone(), answer.origin);
                return Err(ToolboxError::Answer { question, origin, source });
            }
            Err(source) => rejected = Some(source),
        }
    }
    Ok(AskResult::Unanswered(rejected))
}

/// Returns true if an answer of this origin is valid. A model cannot give a person's consent.
pub(super) fn may_answer(question: &Question, origin: &Origin) -> bool {
    !question.is_consent || *origin != Origin::Model
}

pub(super) enum AskResult<R> {
    /// An answer, in the form that the tool receives.
    Answered(serde_json::Value),
    /// No answer, and the reason why the last answer did not fit.
    Unanswered(Option<AnswerError>),
    /// The front end aborts the call.
    Refused(R),
}
