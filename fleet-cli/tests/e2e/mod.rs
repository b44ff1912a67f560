//! The acceptance table of 02 §11.1: what is killed, and what lives on.

mod kill;
