//! The command as a shell sees it: exit status, what it prints, what it leaves on disk.

mod advised;
mod agreement;
mod bench;
mod browser;
mod compare;
mod footprint;
mod full_disk;
mod help;
mod hostile;
mod input;
mod killed;
mod models;
mod planned;
mod policies;
mod policies_made;
mod rejected;
mod shadowed;
mod shell;
mod stores;
mod stores_tools;
mod traces;
