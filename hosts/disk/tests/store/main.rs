//! The store on the real file system: each test is named after what must not happen.

mod damage;
mod fixture;
mod isolation;
mod opening;
mod quota;
mod reading;
mod verifying;
