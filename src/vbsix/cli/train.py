"""`vbsix train`: from data to a parser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, own_domain
from vbsix.cli.engine import (
    Address,
    Coordinator,
    Cpus,
    Distributed,
    Engine,
    Gpus,
    Processes,
    ProcessNumber,
    Storage,
    choose_peers,
)
from vbsix.cluster.connection import LOCAL, choose_cluster, connected
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax

METHOD_HELP = (
    "vbsix (the default), mml, execution-only (the default for JSON lines), value-only, expert-mml or reinforce."
)
RECIPE_HELP = "stochastic (ours, the default) or published (the paper and its reference code)."
VARIANT_HELP = (
    "Named changes, joined by +: beam-64, beam-256, oov-words, init-0.1, hidden-attributes, suffixes, waypoints, "
    "symmetry, prior-work, five-instructions."
)

Method = Annotated[str | None, typer.Option(help=METHOD_HELP)]
Recipe = Annotated[str | None, typer.Option(help=RECIPE_HELP)]
Variant = Annotated[str | None, typer.Option(help=VARIANT_HELP)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, as in search.beam=64.")
]


def train(
    domain: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOMAIN]",
            help=f"{DOMAIN_HELP} Default: tangrams.",
            autocompletion=complete_domain,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder with SCONE's files, a file of JSON lines (*.jsonl), or synthetic, the built-in corpus "
            "(default).",
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, metavar="FILE", help="JSON lines to evaluate on. Default: a tenth of --data, held out."
        ),
    ] = None,
    method: Method = None,
    recipe: Recipe = None,
    variant: Variant = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds train side by side; 1 by default.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Parameter updates.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run's folder; a new one in runs/ by default.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(dir_okay=False, metavar="FILE", help="Settings as TOML; `vbsix config show` prints them all."),
    ] = None,
    settings: Settings = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Continue a trained policy: a run's folder, an exported model, or a model that comes with vbsix. "
            "Settings are its own unless given.",
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Train in stages, each of which continues the one before: a TOML file with a table [[stages]] of "
            "settings for each; context, a stage without context and one with it; teachers, student or "
            "student-symmetry, for --rounds; or a schedule of our results: tangrams-context, "
            "tangrams-large, scene-context.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Train with each of these values; with several --vary, with all combinations.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Cross-validation: the number of folds. Train without each fold, and evaluate on it."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Teaching across folds: train without each fold (5, or --folds) this many times, then a student on "
            "all rows. Policies that have not seen a row infer the world after each of its instructions.",
        ),
    ] = None,
    student_stages: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="With --rounds: the stages of the runs that learn from inferred worlds, those of later rounds and the "
            "student. Default: --stages.",
        ),
    ] = None,
    teachers: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN|MODEL",
            help="Learn from the worlds that trained policies infer: all seeds of a run; a sweep over --folds, whose "
            "runs teach the rows that they have not seen; or a model.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Compile, time a few steps, print the time and memory needed, and train nothing."
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Continue a run or a sweep that was stopped or killed; with --steps N, train a finished run further.",
        ),
    ] = None,
    engine: Engine = LOCAL,
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    storage: Storage = None,
    distributed: Distributed = False,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process: ProcessNumber = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors alone.")] = False,
) -> None:
    """Train a parser. Without arguments: on the built-in corpus, in a few minutes.

    A run has a method (what the paper compares), a recipe (how search explores and what is learned from) and a variant
    (named changes). Sizes and steps are the paper's for SCONE's files, and quick ones for the built-in corpus and for
    JSON lines. A file of settings changes them; --set and --steps change them last.

    Everything goes to the run's folder: checkpoints, metrics.jsonl, TensorBoard events and, at the end, result.json.
    Ctrl-C saves; --resume continues and gives the same result as a run without interruption (on a GPU: with
    XLA_FLAGS=--xla_gpu_deterministic_ops=true).

    With --from a new run continues a trained policy; of a run, each seed at its best step on dev. So a policy that has
    learned without context continues with it: --from runs/first --set network.context=64

    With --stages it trains several runs one after the other, in folders of their own inside the run's folder. The run's
    folder stands for its last stage.

    With --rounds it trains teachers without each fold, then a student. The run's folder stands for the student.

    With --vary or --folds it trains a sweep: a run for each combination of values, each in a folder of its own. Runs
    that share compiled code form a group and are trained side by side; groups are trained one after the other. With
    --engine ray, each group is a task on a Ray cluster, whose nodes share the sweep's folder, or reach a --storage.

    With --distributed, each batch is divided among the devices of all processes. All processes must see the same
    folders; process 0 writes. --resume continues with any number of processes.

    Examples: vbsix train scene --data data --seeds 6 --out runs/scene --set search.beam=64; vbsix train --seeds 3
    --vary training.learning_rate=0.001,0.0003
    """
    prepare_jax()
    from vbsix.cli.report import print_report
    from vbsix.cli.stages import finish_stages, finish_teaching
    from vbsix.cli.stopping import exit_when_stopped
    from vbsix.cli.sweep import finish_sweep, observe_runs, print_plan
    from vbsix.cluster.sweep import require_trainable
    from vbsix.config.choosing import choose_config, continue_config
    from vbsix.config.presets import full_name
    from vbsix.config.toml import read_assignments, read_variations
    from vbsix.data.dataset import SYNTHETIC
    from vbsix.data.json_lines import SUFFIX
    from vbsix.parsing.continuing import open_source
    from vbsix.parsing.teachers import open_teachers
    from vbsix.runs.beginning import begin_training, learn_from
    from vbsix.runs.display import create_display, stop_on_interrupt
    from vbsix.runs.finish import measure_run, train_to_end
    from vbsix.runs.folder import INFERRED_FILE, Run, is_staged, is_teaching, new_folder, reopen_run, resume_command
    from vbsix.runs.loop import Interrupted
    from vbsix.runs.sweep import create_sweep, is_sweep, open_sweep, plan_sweep
    from vbsix.runs.teaching import FOLDS
    from vbsix.utilities.processes import joined, writes_files

    cluster = choose_cluster(engine, address, cpus, gpus, out, resume, storage=storage)
    peers = choose_peers(distributed, coordinator, processes, process)
    held = resume and (is_sweep(resume) or is_staged(resume) or is_teaching(resume))
    more = vary, folds, rounds, teachers, stages, start, dry_run
    if peers and (cluster or any(more) or held or not (out or resume)):
        raise VbsixError(
            "--distributed trains one run in a folder that is given: it needs --out or --resume, and does not go with "
            "sweeps, --rounds, --teachers, --stages, --from, --dry-run and --engine ray."
        )
    own = own_domain(domain)
    if cluster and (rounds or not (vary or folds or (resume and is_sweep(resume)))):
        raise VbsixError("--engine ray trains sweeps: give --vary or --folds, or --resume with a sweep.")
    if resume:
        begun = data, dev, method, recipe, variant, seeds, out, config, settings, start, stages
        if any((*begun, vary, folds, rounds, student_stages, teachers, dry_run)):
            raise VbsixError(
                "--resume continues a run as it was begun; it takes only --steps, --engine, --distributed and --quiet "
                "besides."
            )
        if is_sweep(resume):
            if steps:
                raise VbsixError("--steps: a sweep cannot be trained further.")
            return finish_sweep(open_sweep(resume), own, quiet, cluster)
        if is_staged(resume) or is_teaching(resume):
            if steps:
                raise VbsixError("--steps: stages cannot be trained further.")
            return (finish_stages if is_staged(resume) else finish_teaching)(resume, own, quiet)
        with joined(peers):
            run, dataset = reopen_run(resume, own, steps=steps)
    else:
        continued = open_source(start, own) if start else None
        if continued and any((method, recipe, variant)):
            raise VbsixError("--from: method, recipe and variant are those of the policy; change settings with --set.")
        if continued and data is None:
            data = continued.data
            if data is None:
                raise VbsixError(f"{start}: a model does not know where its data is; give --data.")
        source = SYNTHETIC if data in (None, SYNTHETIC) else str(Path(data).resolve())
        if dev and not source.endswith(SUFFIX):
            raise VbsixError(f"--dev needs JSON lines: give --data FILE{SUFFIX}.")
        given = {"training.steps": steps} if steps else {}
        given |= {"data.dev_file": str(dev)} if dev else {}
        given |= {"data.folds": folds} if folds and not rounds else {}
        given |= read_assignments(settings or [])
        name = own.name if own else None
        if continued:
            trained, has_words = continued.config, continued.words is not None
            chosen = continue_config(trained, config, given, name, has_words=has_words)
        else:
            chosen = choose_config(name, source, method, recipe, variant, config, given)
        words, begin = (continued.words, continued.start) if continued else (None, None)
        run = Run(out or new_folder(chosen), chosen, tuple(range(seeds or 1)), source)
        if rounds and (start or teachers or vary or dry_run):
            raise VbsixError("--rounds does not go with --from, --teachers, --vary or --dry-run.")
        if student_stages and not rounds:
            raise VbsixError("--student-stages needs --rounds: without teachers there is no student.")
        if teachers and dry_run:
            raise VbsixError("--teachers does not go with --dry-run: teachers would have to infer worlds first.")
        taught = open_teachers(teachers) if teachers else None
        if stages and not rounds and (vary or folds or dry_run):
            raise VbsixError("--stages does not go with --vary, --folds or --dry-run.")
        if vary or dry_run or (folds and not rounds):
            if folds and (chosen.data.folds != folds or any("data.fold" in one for one in vary or [])):
                raise VbsixError("--folds says all about folds; leave out data.folds and data.fold.")
            values = read_variations(vary or []) | ({"data.fold": list(range(folds))} if folds else {})
            inferred = run.folder / INFERRED_FILE if taught else None
            sweep = plan_sweep(run.folder, chosen, values, run.seeds, source, inferred)
            if dry_run and cluster:
                raise VbsixError("--dry-run measures on this machine; leave out --engine.")
            if dry_run:
                return print_plan(sweep, own)
            if cluster:
                require_trainable(cluster, sweep)
            if taught:
                with exit_when_stopped():
                    learn_from(taught, run.folder, sweep.runs, observe_runs(quiet), own, words)
            with connected(cluster):
                create_sweep(sweep, own, words, begin)
                return finish_sweep(sweep, own, quiet, cluster)
        with joined(peers), exit_when_stopped():
            begun = begin_training(
                *(run, own, words, begin),
                stages=stages,
                teachers=taught,
                folds=folds or FOLDS,
                rounds=rounds,
                student_stages=student_stages,
                observe=observe_runs(quiet),
            )
        if begun is None:
            return (finish_teaching if rounds else finish_stages)(run.folder, own, quiet)
        run, dataset = begun
    quiet = quiet or not writes_files()
    display = create_display([run], quiet)
    if not quiet:
        seeds_text = "1 seed" if len(run.seeds) == 1 else f"{len(run.seeds)} seeds"
        examples = f"{len(dataset.examples)} examples"
        display.on_message(f"{full_name(run.config)} learns {run.config.domain} from {examples}, {seeds_text}")
        display.on_message(f"run folder: {run.folder}")
    try:
        with stop_on_interrupt(display), display:
            trained = train_to_end(run, dataset, display)
        measured = measure_run(run, dataset, trained)
    except (Interrupted, KeyboardInterrupt) as stopped:
        if writes_files():
            again = f"Stopped before the result was measured. Continue with: {resume_command(run)}"
            typer.echo(str(stopped) or again, err=True)
        raise typer.Exit(130) from None
    if not quiet:
        print_report(run, dataset, trained, measured)
