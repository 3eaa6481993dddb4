//! The store on the real file system: each test is named after what must not happen.

mod batches;
mod completion;
mod damage;
mod device;
mod fixture;
mod isolation;
mod opening;
mod quota;
mod reading;
mod stuck;
mod verifying;
