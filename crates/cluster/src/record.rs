//! The rules that decide what happens to a call, as pure functions over its record.
//!
//! Each run of a call has one record, which is changed only by compare-and-set. Absent: the run has
//! had no effect. [`Record::Acting`]: a worker may have changed or sent something. The last state,
//! [`Record::Ended`], is set once and is the only answer that is delivered.
