"""`vbsix train`: from data to a parser."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.cli.domains import complete_domain, own_domain
from vbsix.cli.jax_settings import prepare_jax
from vbsix.errors import VbsixError

if TYPE_CHECKING:
    from vbsix.training.config import Config

DEFAULT_METHOD = "vbsix"
METHOD_HELP = (
    "vbsix (the default), mml, execution-only (the default for JSON lines), value-only, expert-mml or reinforce; "
    "paper-vbsix or paper-mml for what was published."
)


def train(
    domain: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOMAIN]",
            help="tangrams (the default), alchemy, scene or MODULE:CLASS for a domain of your own.",
            autocompletion=complete_domain,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder with SCONE's files, a file of JSON lines (*.jsonl), or synthetic, the embedded corpus "
            "(default).",
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, metavar="FILE", help="JSON lines to be measured on. Default: a tenth of --data, held out."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help=METHOD_HELP),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds train side by side; 1 by default.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="How many updates.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run's folder; a new one in runs/ by default.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(dir_okay=False, metavar="FILE", help="Settings as TOML; `vbsix config show` prints them all."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, as in search.beam=64.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with a run that was stopped or killed, as it was begun.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors alone.")] = False,
) -> None:
    """Train a parser. Without arguments: on the embedded corpus, in a few minutes.

    Sizes and steps are the paper's for SCONE's files, all settings with --method paper-vbsix or paper-mml, and quick
    ones for the embedded corpus and for JSON lines; a file of settings changes them, --set, --steps and --method change
    them last. All of a run lies in its folder: checkpoints, metrics.jsonl, TensorBoard's events and, at the end,
    result.json. Ctrl-C saves; --resume goes on and gives what a run left alone would have given (on a GPU: with
    XLA_FLAGS=--xla_gpu_deterministic_ops=true).

    Example: vbsix train scene --data data --seeds 6 --out runs/scene --set search.beam=64
    """
    prepare_jax()
    from vbsix.cli.report import print_report
    from vbsix.data.json_lines import SUFFIX
    from vbsix.training.display import create_display, stop_on_interrupt
    from vbsix.training.run import Interrupted, Run, create_run, domain_of, open_run, resume_command, save_result
    from vbsix.training.run import train as train_run
    from vbsix.training.spurious import find_spurious, predict_longest
    from vbsix.training.task import SYNTHETIC, load_task

    own = own_domain(domain)
    if resume:
        if any((data, dev, method, seeds, steps, out, config, settings)):
            raise VbsixError("--resume goes on with a run as it was begun: it goes with no other option but --quiet.")
        run = open_run(resume)
        task = load_task(run.config, run.source, domain_of(run.config, run.folder, own, run.attributes))
    else:
        source = SYNTHETIC if data in (None, SYNTHETIC) else str(Path(data).resolve())
        if dev and not source.endswith(SUFFIX):
            raise VbsixError(f"--dev goes with JSON lines alone: give --data FILE{SUFFIX}.")
        given = [*(settings or []), *([f"data.dev_file={dev.resolve()}"] if dev else [])]
        chosen, name = choose_config(own.name if own else None, source, method, steps, config, given)
        folder = out or new_folder(f"{chosen.domain}-{name}")
        run = Run(folder, chosen, name, tuple(range(seeds or 1)), source)
        task = create_run(run)
    display = create_display(run, quiet)
    if not quiet:
        seeds_text = "1 seed" if len(run.seeds) == 1 else f"{len(run.seeds)} seeds"
        display.on_message(f"{run.method} learns {run.config.domain} from {len(task.examples)} examples, {seeds_text}")
        display.on_message(f"all of it goes to {run.folder}")
    measuring = f"Stopped before all was measured; what was learned is saved. Go on with: {resume_command(run)}"
    try:
        with stop_on_interrupt(display), display:
            trained = train_run(run, task, display)
        if display.stopping:
            raise Interrupted(measuring)
        networks = trained.learners.networks
        predictions = predict_longest(task, networks)
        spurious = find_spurious(task, networks, predictions)
    except (Interrupted, KeyboardInterrupt) as stopped:
        typer.echo(str(stopped) or measuring, err=True)
        raise typer.Exit(130) from None
    save_result(run, trained, spurious)
    if not quiet:
        print_report(run, task, trained, spurious, predictions)


def choose_config(
    domain: str | None, source: str, method: str | None, steps: int | None, file: Path | None, assignments: list[str]
) -> tuple[Config, str]:
    """The settings of a new run, and the name of the method that they make.

    What the command line says goes before what the file says, and that before the domain's own settings.
    """
    from vbsix.data.json_lines import SUFFIX
    from vbsix.training import config as configs
    from vbsix.training.task import SYNTHETIC

    given = configs.read_toml(file) if file else {}
    given = configs.without_method(given) if method else given
    given |= {"training.steps": steps} if steps else {}
    given |= configs.read_assignments(assignments)
    given["domain"] = domain or configs.override(configs.Config(), given).domain
    base = configs.quick if source == SYNTHETIC else configs.own if source.endswith(SUFFIX) else configs.preset
    chosen = configs.override(base(given["domain"], *([method] if method else [])), given)
    return chosen, configs.method_of(chosen)


def new_folder(name: str) -> Path:
    """The first of `runs/NAME-1`, `runs/NAME-2` and so on that is not there yet."""
    return next(folder for number in count(1) if not (folder := Path("runs", f"{name}-{number}")).exists())
