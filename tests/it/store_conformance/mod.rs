//! Every method of the store does the same on both databases.

mod audit;
mod bench;
mod claims;
mod door;
mod entities;
mod gateway;
mod jobs;
mod leases;
mod model;
mod openings;
mod places;
mod retention;
mod schema;
mod small;
mod waiting;
mod wake;
mod watches;
