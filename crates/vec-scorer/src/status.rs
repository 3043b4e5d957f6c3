//! How refusals and failures look on the wire: codes and short sentences, never internals.

use tonic::Status;

use crate::owner::OwnerError;
use crate::state::Refusal;

pub(crate) fn owner_status(error: OwnerError) -> Status {
    let refusal = match error {
        OwnerError::Gone => return Status::unavailable("the scorer is stopping"),
        OwnerError::Refused(refusal) => refusal,
    };
    let text = refusal.to_string();
    match refusal {
        Refusal::Unknown(_) => Status::not_found(text),
        Refusal::Closed(_) | Refusal::NotClosed(_) => Status::failed_precondition(text),
        Refusal::Differs(_) => Status::already_exists(text),
        Refusal::Exhausted { .. } | Refusal::TooManyClients => Status::resource_exhausted(text),
        Refusal::Quota(_) | Refusal::InputDiffers(_) => Status::invalid_argument(text),
    }
}

/// What is told when the scorer itself failed; the cause is in its log.
pub(crate) fn score_error() -> Status {
    Status::internal("score_error: the scorer failed; nothing was charged")
}
