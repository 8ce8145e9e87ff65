"""The command line: ``windowpane sql``, ``explain``, ``checkpoint``, ``inspect``, ``ui``, ``size``, ``share-classes``, ``demo``.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a statement failed, 2 the command line is wrong;
of ``checkpoint diff`` see there.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.console import Console

from windowpane import __version__
from windowpane.errors import InvalidDurationError, MissingExtraError, SqlError, WindowpaneError
from windowpane.windowing.times import to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowpane.result import Runnable
    from windowpane.sql import Session

app = typer.Typer(
    name="windowpane",
    help="Flink's windows and RisingWave's OVER windows: SQL with materialized views, a demo, benchmarks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_EXTRAS = {"pyspark": "spark", "sqlglot": "sql", "prompt_toolkit": "sql", "psycopg": "postgres"}
_ERRORS = Console(stderr=True, highlight=False, soft_wrap=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"windowpane {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Read the options before the command."""


Store = Annotated[
    str, typer.Option("--store", help="DuckDB file that keeps tables and views, or a PostgreSQL database.", metavar="PATH|URL")
]
State = Annotated[
    str | None,
    typer.Option(
        "--state", help="With a PostgreSQL store, the DuckDB file beside it; DATABASE.state.duckdb if not given.", metavar="PATH"
    ),
]


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


Shape = Annotated[Format, typer.Option("--format", help="How results are printed; json is one object for each statement.")]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


@app.command()
def sql(
    script: Annotated[
        str | None, typer.Argument(metavar="[FILE|-]", help="Script to run; - is stdin, nothing the prompt.")
    ] = None,
    store: Store = ":memory:",
    state: State = None,
    shape: Shape = Format.TABLE,
    as_json: Json = False,
    spark: Annotated[bool, typer.Option("--spark", help="Run materialized views as streaming queries of Spark.")] = False,
    history: Annotated[
        Path | None, typer.Option("--history", help="File that keeps what was typed at the prompt.", metavar="PATH")
    ] = None,
    flush_every: Annotated[
        str | None,
        typer.Option("--flush-every", help="After the script, flush at this pace until interrupted.", metavar="DURATION"),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="After the script, follow its sources until interrupted; with a store, go on there."),
    ] = False,
) -> None:
    """Run a script of SQL statements, or type them at a prompt."""
    where = "windowpane" if "://" in store else store  # a URL may hold a password
    pace = _pace(flush_every or ("1 second" if follow else None), script)
    with _refusals(where):
        from windowpane.sql import Session

        with Session(_spark() if spark else None, store, state) as session:
            if script is None and sys.stdin.isatty():
                from windowpane.sql.shell.prompt import run_prompt

                run_prompt(session, Console(), history or Path.home() / ".windowpane_history")
            else:
                name, text = _read(script or "-")
                if follow:
                    from windowpane.sql.shell.commands import left_of

                    with _refusals(name):
                        text = left_of(session, text)
                _run_script(session, name, text, Format.JSON if as_json else shape)
                if pace is not None:
                    from windowpane.sql.shell.commands import keep_flushing

                    keep_flushing(session, pace, lambda error: _print_error(where, error))


def _pace(flush_every: str | None, script: str | None) -> float | None:
    if flush_every is None:
        return None
    if script is None:
        raise typer.BadParameter("--flush-every needs a script, as --follow; at the prompt, FLUSH and WAIT flush.")
    try:
        seconds = to_micros(flush_every) / 1e6
    except InvalidDurationError as error:
        raise typer.BadParameter(f"--flush-every: {error}") from None
    if seconds <= 0:
        raise typer.BadParameter(f"--flush-every {flush_every}: more than nothing, such as '5 seconds'.")
    return seconds


def _spark() -> SparkSession:
    """Return the running Spark, or one of this process, quiet; what takes seconds is said on stderr, there and later."""
    from windowpane.sql.on_spark.queries import local_spark

    said = logging.getLogger("windowpane.sql")
    if not any(isinstance(each, _Said) for each in said.handlers):
        said.addHandler(_Said())
        said.setLevel(logging.INFO)
    said.info("starting Spark, which takes some seconds")
    return local_spark()


class _Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print it; that something takes long is no warning."""
        is_news = record.levelno < logging.WARNING
        _ERRORS.print(record.getMessage() + " ..." * is_news, style="dim" if is_news else "", markup=False)


def _read(script: str) -> tuple[str, str]:
    if script == "-":
        return "stdin", sys.stdin.read()
    try:
        return script, Path(script).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {script}: {error}") from None


def _run_script(session: Session, name: str, text: str, shape: Format) -> None:
    from windowpane.sql.shell.printing import Printer, csv_lines, json_line, on_stdout

    printer = Printer(on_stdout())
    with _refusals(name):
        for result in session.stream(text):
            if shape is Format.JSON:
                typer.echo(json_line(result))
            elif not result.has_rows:
                _ERRORS.print(result.tag, style="dim")
            elif shape is Format.CSV:
                for line in csv_lines(result):
                    typer.echo(line)
            else:
                printer.print(result)
            if result.notice and shape is not Format.JSON:
                _ERRORS.print(f"notice: {result.notice}", style="dim")


class _refusals:  # noqa: N801 - used as a context, like contextlib's
    """Turns an error of windowpane into a message on stderr and exit code 1."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and not isinstance(error, WindowpaneError) and error.name in _EXTRAS:
            error = MissingExtraError(error.name, _EXTRAS[error.name])
        if isinstance(error, WindowpaneError):
            _print_error(self._name, error)
            raise typer.Exit(1) from None


def _print_error(name: str, error: WindowpaneError) -> None:
    where = f"{name}:{error.line}:{error.column}" if isinstance(error, SqlError) else name
    _ERRORS.print(f"{where}: {type(error).__name__}: {error}", markup=False)


@app.command()
def explain(
    script: Annotated[str, typer.Argument(metavar="FILE|-", help="Script whose queries and views are explained.")],
) -> None:
    """Print how the queries and views of a script are run; nothing is changed and no row is read."""
    name, text = _read(script)
    with _refusals(name):
        from windowpane.sql import Session
        from windowpane.sql.shell.commands import explain_script

        with Session(":memory:") as session:
            for line in explain_script(session, text):
                typer.echo(line)


checkpoint = typer.Typer(name="checkpoint", help="Compare, copy, verify, rescale checkpoints of queries.", no_args_is_help=True)
app.add_typer(checkpoint)


@checkpoint.command()
def diff(
    location: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Checkpoint location of a query.")],
    program: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="A function that is given the Spark session and returns the program.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the parts that differ as JSON.")] = False,
    cut: Annotated[str | None, typer.Option("--cut", help="Where new windows would begin.", metavar="INSTANT")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="As start(incomplete='partial') would go on.")] = False,
) -> None:
    """Print what starting a program from a checkpoint would change; exit status 0: nothing or safe, 1: to accept, 2: refused."""
    from windowpane.result import changes

    with _refusals(location):
        found = changes(_program(program)(_spark()), location, cut, "partial" if partial else "null")
        typer.echo(json.dumps({"verdict": found.verdict, "parts": found.parts}) if as_json else str(found))
    raise typer.Exit({"accept": 1, "refused": 2}.get(found.verdict, 0))


_NEW = typer.Argument(metavar="NEW", help="Folder of the new checkpoint, which is not there yet.")
_OLD = typer.Argument(metavar="OLD", help="Checkpoint location of a query that does not run.")


@checkpoint.command()
def copy(
    old: Annotated[str, _OLD],
    new: Annotated[str, _NEW],
    same_query: Annotated[bool, typer.Option("--same-query", help="The copy goes on in the place of the old one.")] = False,
) -> None:
    """Copy a checkpoint, with its paths as they are at the new place: a query that branches off, or one that moves."""
    from windowpane import checkpoints

    with _refusals(old):
        checkpoints.copy(old, new, same_query=same_query, spark=_spark())


@checkpoint.command()
def verify(location: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Checkpoint location of a query.")]) -> None:
    """Read the state of a checkpoint as a whole, and print what is wrong with it; exit status 1 if anything is."""
    from windowpane import checkpoints

    with _refusals(location):
        found = checkpoints.verify(location, spark=_spark())
    for line in found:
        typer.echo(line)
    raise typer.Exit(1 if found else 0)


@checkpoint.command()
def rescale(
    old: Annotated[str, _OLD],
    new: Annotated[str, _NEW],
    buckets: Annotated[int, typer.Option("--buckets", help="How many, 1 to 256.", metavar="N")],
) -> None:
    """Write a checkpoint that goes on where the old one is, with its keys spread over another number of buckets."""
    from windowpane import checkpoints

    with _refusals(old):
        checkpoints.rescale(old, new, buckets, spark=_spark())


@checkpoint.command()
def forget(
    old: Annotated[str, _OLD],
    new: Annotated[str, _NEW],
    key: Annotated[list[str], typer.Option("--key", help="A part of the key; once for each, in their order.", metavar="VALUE")],
) -> None:
    """Write a checkpoint that goes on where the old one is, without the state of a key."""
    from windowpane import checkpoints

    with _refusals(old):
        checkpoints.forget(old, new, *key, spark=_spark())


@app.command()
def inspect(
    location: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Checkpoint location of a query, running or stopped.")],
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Which table: query, watermarks, windows, keys, ...; all if left out.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", help="Show what a key holds; say it once for each key column, in order.", metavar="VALUE"),
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", help="Show what a window holds, such as '2013-01-01 10:00/2013-01-01 11:00'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each table as a line of JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print as CSV.")] = False,
    most: Annotated[int, typer.Option("--most", help="Show so many windows, keys and batches at most.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Print again after each batch, until interrupted.")] = False,
) -> None:
    """Show what a query holds and does, from its checkpoint: nothing is written, and no Spark is needed."""
    from windowpane.inspect import holder_of
    from windowpane.inspect.inspection import shown_tables
    from windowpane.inspect.printing import csv_lines, json_text, print_table, wide_console

    console, batch = wide_console(), -2
    with _refusals(location):
        while True:
            last, shown = shown_tables(holder_of(location), table, key or [], window, most, batch)
            if batch != last and (last < 0 or not shown):
                said = "nothing is held" if last >= 0 else "no batch has been committed yet"
                _ERRORS.print(f"{location}: {said}", markup=False)
            batch = last
            for name, each in shown:
                if as_json:
                    typer.echo(json_text(name, each))
                elif as_csv:
                    for line in csv_lines(each):
                        typer.echo(line)
                else:
                    print_table(console, name, each)
            if not follow:
                return
            time.sleep(0.5)


@app.command()
def ui(
    checkpoints: Annotated[list[str], typer.Argument(metavar="CHECKPOINT...", help="Checkpoint locations of queries.")],
    port: Annotated[int, typer.Option("--port", help="The port; 0 for a free one.")] = 8180,
    host: Annotated[
        str, typer.Option("--host", help="The address; another one than this machine's own needs the token.")
    ] = "127.0.0.1",
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write the page as one file instead, with all that it shows.", metavar="PAGE.HTML"),
    ] = None,
) -> None:
    """Show what queries hold and do as a page, live; or write the page as one file for a ticket."""
    from windowpane.ui import export as write
    from windowpane.ui import serve

    with _refusals(checkpoints[0]):
        if export is not None:
            write(checkpoints[0], export)
            _ERRORS.print(f"written: {export}", markup=False)
            return
        page = serve(checkpoints, port, host)
        _ERRORS.print(f"{page.url}  (interrupt to end)", markup=False)
        try:
            page.wait()
        except KeyboardInterrupt:
            page.close()


def _program(name: str) -> Callable[[SparkSession], Runnable]:
    """Return a function by the name of its module, which may be in the current folder, and its own."""
    module, _, function = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Callable[[SparkSession], Runnable] = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"{name}: {error}; say MODULE:FUNCTION, such as jobs.hourly:program.") from None
    return found


@app.command()
def size(
    rate: Annotated[float, typer.Option("--rate", help="Rows a second.")],
    keys: Annotated[float, typer.Option("--keys", help="Keys that are alive at a time.")],
    window: Annotated[str, typer.Option("--window", help="Length of a window, or the gap of a session.")] = "1 minute",
    slide: Annotated[str | None, typer.Option("--slide", help="From one window to the next; left out if none overlap.")] = None,
    session: Annotated[bool, typer.Option("--session", help="Session windows.")] = False,
    over: Annotated[bool, typer.Option("--over", help="OVER calls on window close in place of windows.")] = False,
    delay: Annotated[str, typer.Option("--delay", help="Delay of the watermark, and allowed lateness.")] = "5 seconds",
    batch: Annotated[str, typer.Option("--batch", help="Interval of the trigger.")] = "10 seconds",
    cores: Annotated[int | None, typer.Option("--cores", help="Cores to reckon with; as few as will do if left out.")] = None,
    executors: Annotated[
        int | None, typer.Option("--executors", help="Executors that have these cores; one if left out.")
    ] = None,
    buckets: Annotated[int | None, typer.Option("--buckets", help="Buckets of these cores; one each if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON.")] = False,
) -> None:
    """Reckon what a query takes: seconds of a batch, bytes of state, with intervals, and what to set."""
    from windowpane import sizing
    from windowpane.sizing.printing import as_json as line
    from windowpane.sizing.printing import print_estimate

    kinds = {"--over": over, "--session": session, "--slide": slide is not None}
    if len(chosen := [option for option, given in kinds.items() if given]) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} are of different kinds of programs: say one.")
    if cores is None and (executors or buckets):
        raise typer.BadParameter("--executors and --buckets go with --cores: without it as few as will do are looked for.")
    kind = chosen[0].removeprefix("--") if over or session else "tumbling" if slide is None else "sliding"
    try:
        length, late, each = (to_micros(given) / 1e6 for given in (window, delay, batch))
        slides = None if slide is None else to_micros(slide) / 1e6
        spread = cores or 1, executors or 1, buckets or cores or 2
        load = sizing.Load(kind, rate * each, keys, *spread, window=length, slide=slides, delay=late, batch=each)
        found = sizing.enough(load) if cores is None else sizing.estimate(load)
    except WindowpaneError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        typer.echo(line(found))
    else:
        print_estimate(Console(highlight=False), found)


@app.command()
def share_classes(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE.jsa", help="The file to write, some 180 MB.")],
) -> None:
    """Archive the classes that Spark loads for a query, and print the option of the JVM with which it starts sooner."""
    if archive.suffix != ".jsa":
        raise typer.BadParameter(f"{archive}: such archives end with .jsa, and what is there is written anew.")
    if not archive.absolute().parent.is_dir():
        raise typer.BadParameter(f"{archive}: there is no folder {archive.absolute().parent}.")
    with _refusals(str(archive)):
        from windowpane.demo.session import write_archive

        _ERRORS.print("running queries on Spark, and writing what it has loaded, which takes a minute ...", style="dim")
        typer.echo(f"spark.driver.extraJavaOptions {write_archive(archive)}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(context: typer.Context) -> None:
    """Replay the flights of 2013 through windows on Spark; with --live one day of them, paced in real time, without Spark."""
    _module("windowpane.demo", context.args, "Install it with pip install 'windowpane[spark,demo]'.")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmark suite of a source checkout."""
    _module("bench", context.args, "It is part of the source checkout: run this in its folder.")


def _module(name: str, arguments: list[str], instead: str) -> None:
    import runpy

    sys.path.insert(0, str(Path.cwd()))
    if find_spec(name) is None:
        _ERRORS.print(f"{name} is not here. {instead}")
        raise typer.Exit(1)
    sys.argv = [name, *arguments]
    with _refusals("windowpane"):
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] in (["inspect"], ["ui"]):
        _keep_pandas_out()
    app()


class _WithoutPandas:
    """A finder of modules that finds no pandas: its import would take a quarter of the time to the first table."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Find nothing, and end the search for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not looked for in this process", name=name)


def _keep_pandas_out() -> None:
    """Have Arrow find no pandas: it looks once, as soon as it is given values."""
    sys.meta_path.insert(0, _WithoutPandas)
    pa.scalar(0)
    sys.meta_path.remove(_WithoutPandas)


if __name__ == "__main__":
    main()
