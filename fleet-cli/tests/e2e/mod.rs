//! Whole programs: what is killed and what lives on (02 §11.1), and real agents against a scripted
//! provider.

mod agents;
mod backends;
mod kill;
mod matrix;
mod nested;
mod network;
mod newer;
mod outage;
mod programs;
mod provider;
mod send;
mod unattended;
