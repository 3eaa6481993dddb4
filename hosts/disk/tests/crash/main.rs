//! The store on a simulated disk that loses, tears, misplaces and garbles: zero wrong bytes, zero failed opens.

mod disk;
mod faults;
mod maintenance;
mod medium;
mod model;
mod points;
mod random;
mod strict;
