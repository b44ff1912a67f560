//! The `ours-fleet` command as a library: arguments in, exit status out.
//!
//! [`run`] is the whole program. [`args`] says what was typed, [`settings`] what the environment
//! decides, [`compose`] which adapters are used; each verb is one file in [`command`], and
//! everything that is printed goes through [`ui`].

#![forbid(unsafe_code)]

pub mod app;
pub mod args;
pub mod command;
pub mod compose;
pub mod env_vars;
pub mod error;
pub mod exit;
pub mod fleet;
pub mod resolved;
pub mod settings;
pub mod supervision;
pub mod ui;

use std::ffi::OsString;
use std::future::Future;

use clap::error::ErrorKind as ParseErrorKind;

use app::App;
use args::{CheckFormat, Cli, Command};
use env_vars::Env;
use error::{CliError, ErrorKind};
use exit::ExitStatus;
use fleet_adapters::runner::program_trust;
use settings::Known;
use ui::{Io, Printer, print_error};

/// Becomes the command, or returns the status to exit with.
type Inside = fn(&[OsString]) -> i32;

/// The first programs inside sandboxes, and what keeps a container, by their hidden words.
const FIRST_INSIDE: &[(&str, Inside)] = &[
    (fleet_sandbox::attest::COMMAND, fleet_sandbox::attest::inside),
    (fleet_sandbox::landlock::COMMAND, fleet_sandbox::landlock::inside),
    (fleet_sandbox::limits::ENTER, fleet_sandbox::limits::enter),
    (fleet_sandbox::podman::KEEP, fleet_sandbox::podman::keep),
    (fleet_sandbox::podman::ENTER, fleet_sandbox::podman::inside),
];

/// Runs with the arguments, environment and streams of this process.
pub fn run_process() -> u8 {
    // The first program inside a sandbox, before every agent: it needs nothing of what follows, and
    // what it takes is added to each start.
    let mut words = std::env::args_os().skip(1);
    let verb = words.next().unwrap_or_default();
    let inside = FIRST_INSIDE.iter().find(|(name, _)| verb == *name);
    if let Some((_, inside)) = inside {
        return u8::try_from(inside(&words.collect::<Vec<_>>())).unwrap_or(1);
    }
    // What a shell left open would live on in runners and tmux servers, for months. Where the system
    // cannot tell what is open this is not known; the launcher of an agent refuses then.
    drop(fleet_sandbox::close_inherited_on_exec());
    let env = Env::from_process();
    let io = Io::from_process(&env);
    run(std::env::args_os(), &env, io)
}

/// Runs one command line and returns the exit code. `args` begins with the name of the program.
pub fn run(args: impl IntoIterator<Item = OsString>, env: &Env, io: Io) -> u8 {
    let printer = Printer::new(io);
    match args::parse(args) {
        // The launcher is the harness to the console: it ends with the harness's own code.
        Ok(Cli { command: Command::Pane(args), .. }) => {
            match block_on(fleet_sandbox::run_pane(&args.file)) {
                Ok(code) => u8::try_from(code).unwrap_or(ExitStatus::Failed.code()),
                Err(error) => finish(&printer, fail(&printer, &error, false)).code(),
            }
        }
        // Single-threaded, as it moves itself into other namespaces: no runtime either.
        Ok(Cli { command: Command::Listen(args), .. }) => {
            u8::try_from(fleet_sandbox::listen_inside(&args.words)).unwrap_or(1)
        }
        // Run many times a turn, in the agent's sandbox: it needs no settings and no runtime.
        Ok(Cli { command: Command::Hook(args), .. }) => {
            command::hook::run(&printer, &args);
            // Whoever ran it may be gone; that is no failure that an agent should see.
            drop(printer.finish());
            ExitStatus::Done.code()
        }
        Ok(cli) => execute(&cli, env, printer).code(),
        Err(error) => {
            let status = parse_failure(&printer, &error);
            finish(&printer, status).code()
        }
    }
}

/// Help and version are results; everything else that the parser says is wrong usage.
fn parse_failure(printer: &Printer, error: &clap::Error) -> ExitStatus {
    let text = |color: bool| {
        let text = error.render();
        if color { text.ansi().to_string() } else { text.to_string() }
    };
    match error.kind() {
        ParseErrorKind::DisplayVersion => {
            printer.line(env!("CARGO_PKG_VERSION"));
            ExitStatus::Done
        }
        ParseErrorKind::DisplayHelp => {
            printer.raw(&text(printer.color()));
            ExitStatus::Done
        }
        _ => {
            printer.usage(&text(printer.stderr_color()));
            ExitStatus::Usage
        }
    }
}

fn finish(printer: &Printer, status: ExitStatus) -> ExitStatus {
    match printer.finish() {
        Ok(()) => status,
        Err(error) => {
            printer.error(format!("failed to write the output: {error}"));
            ExitStatus::Failed
        }
    }
}

fn execute(cli: &Cli, env: &Env, printer: Printer) -> ExitStatus {
    let json = wants_json(&cli.command);
    if cli.global.configuration.is_some() && !loads_config(&cli.command) {
        let error = CliError::usage("this command reads no configuration: leave out `-c`");
        return finish(&printer, fail(&printer, &error, json));
    }
    // Needs neither settings nor ports, so that it works wherever a shell starts.
    if let Command::Completions(args) = &cli.command {
        command::completions::run(&printer, args);
        return finish(&printer, ExitStatus::Done);
    }
    if let Command::Man(args) = &cli.command {
        let status = match command::man::run(&printer, args) {
            Ok(()) => ExitStatus::Done,
            Err(error) => fail(&printer, &error, json),
        };
        return finish(&printer, status);
    }
    if let Command::Schema(args) = &cli.command {
        command::schema::run(&printer, args);
        return finish(&printer, ExitStatus::Done);
    }
    let early = compose::early();
    let configuration = cli.global.configuration.as_deref();
    let known = match settings::read(env, configuration, &*early.store, &*early.probe) {
        Ok(known) => known,
        Err(error) => return finish(&printer, fail(&printer, &error, json)),
    };
    let Known { settings, world, runtime_dir } = known;
    let (store, probe) = (&*early.store, &*early.probe);
    let named = settings.configuration.as_deref();
    let trust = program_trust(store, probe, &world, &early.harnesses, named);
    let world = world.trusting(trust, probe);
    let supervision = compose::supervision(settings.supervisor, &world);
    let runtime = compose::runtime(world, runtime_dir, supervision.kind);
    let app = App { runtime, supervision, settings, printer };
    let status = match dispatch(&app, &cli.command) {
        Ok(status) => status,
        Err(error) => fail(&app.printer, &error, json),
    };
    finish(&app.printer, status)
}

fn fail(printer: &Printer, error: &CliError, json: bool) -> ExitStatus {
    if json {
        printer.json(&error.json());
    }
    print_error(printer, error);
    error.status()
}

fn wants_json(command: &Command) -> bool {
    match command {
        Command::Init(args) => args.json,
        Command::Config(args) => args.json,
        Command::Check(args) => args.format == CheckFormat::Json,
        Command::Explain(args) => args.json,
        Command::Doctor(args) => args.json,
        Command::Up(args) => args.json,
        Command::Down(args) => args.json,
        Command::Restart(args) => args.json,
        Command::ForceRestart(args) => args.json,
        Command::Ls(args) => args.json,
        Command::Status(args) => args.json,
        Command::Peek(args) => args.json,
        Command::Logs(args) => args.json,
        Command::Net(args) => args.json,
        Command::Send(args) => args.json,
        Command::Version(args) => args.json,
        Command::Attach(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Run(_)
        | Command::Pane(_)
        | Command::Listen(_)
        | Command::Hook(_)
        | Command::Roles(_) => false,
    }
}

fn loads_config(command: &Command) -> bool {
    !matches!(
        command,
        Command::Init(_)
            | Command::Version(_)
            | Command::Schema(_)
            | Command::Completions(_)
            | Command::Pane(_)
            | Command::Listen(_)
            | Command::Hook(_)
    )
}

fn dispatch(app: &App, command: &Command) -> Result<ExitStatus, CliError> {
    match command {
        Command::Init(args) => block_on(command::init::run(app, args))?,
        Command::Config(args) => block_on(command::config::run(app, args))?,
        Command::Check(args) => block_on(command::check::run(app, args))?,
        Command::Explain(args) => block_on(command::explain::run(app, args))?,
        Command::Doctor(args) => block_on(command::doctor::run(app, args))?,
        Command::Up(args) => block_on(command::up::run(app, args))?,
        Command::Down(args) => block_on(command::down::run(app, args))?,
        Command::Restart(args) => {
            block_on(command::restart::run(app, &args.names, false, args.json))?
        }
        Command::ForceRestart(args) => {
            block_on(command::restart::run(app, &args.names, true, args.json))?
        }
        Command::Ls(args) => block_on(command::ls::run(app, args))?,
        Command::Status(args) => block_on(command::status::run(app, args))?,
        Command::Peek(args) => block_on(command::peek::run(app, args))?,
        Command::Attach(args) => block_on(command::attach::run(app, args))?,
        Command::Send(args) => block_on(command::send::run(app, args))?,
        Command::Logs(args) => block_on(command::logs::run(app, args))?,
        Command::Net(args) => command::net::run(app, args),
        Command::Version(args) => block_on(command::version::run(app, args))?,
        Command::Run(args) if args.detach => command::run::detached(app, args),
        Command::Run(args) => block_on(command::run::run_here(app, args))?,
        Command::Roles(_) => {
            command::roles::run(app);
            Ok(ExitStatus::Done)
        }
        // Handled before there was an app.
        Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Pane(_)
        | Command::Listen(_)
        | Command::Hook(_) => Ok(ExitStatus::Done),
    }
}

/// One thread is enough: commands wait, they do not compute.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map(|runtime| runtime.block_on(future))
        .map_err(|source| ErrorKind::Runtime { source }.into())
}
