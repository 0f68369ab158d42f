//! `adit top` in a real terminal (tmux), and `adit sessions`, `routes` and `status`: of a scripted process, and of a
//! real one.

mod real;
mod scripted;
mod tables;
mod terminal;
mod tmux;
