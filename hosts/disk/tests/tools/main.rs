//! What an operator does with a store: each test is named after what must not happen.

mod archiving;
mod fixture;
mod laws;
mod looking;
mod removing;
