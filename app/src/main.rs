//! The `samara` program; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    samara::main(std::env::args_os())
}
