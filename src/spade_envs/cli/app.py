"""The application: its commands, and how errors become one line and an exit code.

Exit codes: 0 fine, 1 findings (something was refused, an episode was lost to an error), 2 could not run.
"""

from __future__ import annotations

import io
import sys
from importlib.metadata import entry_points

import typer

from spade_envs.cli import browse, calibrate, doctor, generate, play, pools, stats, validate, view
from spade_envs.cli.console import fail, plainly

_traceback = False

app = typer.Typer(
    name="spade",
    help="Synthesise, validate, store, play and train on environments written by language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    global _traceback
    _traceback = traceback
    if version:
        from spade_envs import __version__

        typer.echo(__version__)
        raise typer.Exit


def _add_commands() -> None:
    """Add our commands, then those that other packages (the trainer) declare in ``spade_envs.commands``."""
    declared = {point.name: point for point in entry_points(group="spade_envs.commands")}
    if "quickstart" in declared:
        app.command("quickstart")(declared.pop("quickstart").load())
    app.command("doctor")(doctor.doctor)
    app.command("generate")(generate.generate)
    app.command("validate")(validate.validate)
    app.command("calibrate")(calibrate.calibrate)
    app.command("list")(browse.list_records)
    app.command("show")(browse.show)
    app.command("search")(browse.search)
    app.command("stats")(stats.stats)
    app.command("play")(play.play)
    app.command("import")(pools.import_pool)
    app.command("export")(pools.export)
    app.command("push")(pools.push)
    app.command("pull")(pools.pull)
    app.command("view")(view.view)
    app.command("report")(view.report)
    for name, point in sorted(declared.items()):
        command = point.load()
        if isinstance(command, typer.Typer):  # a group of commands
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)


def run() -> None:
    """Run the command line; errors of input or machinery end it with one clear line and exit code 2."""
    _add_commands()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows \u2026 rather than an error
    try:
        app()
    except KeyboardInterrupt:
        fail("interrupted", code=130)
    except ImportError as error:
        fail(f"{error}. This command may need more packages: pip install 'spade-envs[train]'")
    except Exception as error:
        # Our own exceptions and those of bad input carry a message for people; anything else is a fault of ours.
        ours = type(error).__module__.split(".")[0] in ("spade_envs", "spade_train")
        if _traceback or not (ours or isinstance(error, (OSError, ValueError, LookupError))):
            raise
        fail(plainly(error))


if __name__ == "__main__":
    run()
    sys.exit(0)
