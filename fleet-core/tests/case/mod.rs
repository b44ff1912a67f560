mod closure;
mod isolation;
mod select;
mod weakness;
