//! Text for people. Pure: from events and states to lines.

mod event;
mod explain;
mod summary;
mod table;

pub(crate) use event::{clip, event_line};
pub(crate) use explain::explanation;
pub(crate) use summary::{Finish, summary};
pub(crate) use table::{Align, table};
