//! Attacks, and protections that hold for every call.

mod advice;
mod approval;
mod audit_coverage;
mod cases;
mod escapes;
mod killed;
mod marks;
mod masking;
mod pins;
mod secret_requests;
mod secrets;
