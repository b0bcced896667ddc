"""`vbsix data`: check, fetch and make data files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.utilities.errors import InvalidData, InvalidDomain, VbsixError

if TYPE_CHECKING:
    from vbsix.data.examples import Row
    from vbsix.data.words import Words

app = typer.Typer(help="Check, fetch and make data files.", no_args_is_help=True)

SHOWN_PROBLEMS = 20
"""How many problems of a file are printed; `--json` has them all."""


@app.command()
def check(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="Folder of the TSV files, or the one above `scone/`; or JSON lines."),
    ],
    domain: Annotated[
        str | None, typer.Option(help=f"Of JSON lines: {DOMAIN_HELP}", autocompletion=complete_domain)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, with every problem.")] = False,
) -> None:
    """Validate every row of a folder's data files, or of a file of JSON lines, and say what is in them.

    Counts are of the paper's examples: prefixes of the rows. Words are unknown that GloVe does not have, if its file
    is in DIR or DIR/glove. Problems are listed with file and line, and end with exit code 2. With JSON lines, a domain
    of your own is checked too: whether searches can rely on it, and whether they reach the targets.

    Example: vbsix data check examples.jsonl --domain my_module:MyDomain
    """
    report = inspect_json_lines(path, domain) if path.suffix == ".jsonl" else inspect_folder(path)
    if as_json:
        typer.echo(json.dumps({"format": 1, **asdict(report)}))
    else:
        _print_report(report)
    if report.problems or any(file.problems for file in report.files):
        raise typer.Exit(2)


def complete_source() -> list[str]:
    """The names of data sets, for the shell's completion."""
    from vbsix.data.download import SOURCES

    return list(SOURCES)


@app.command()
def fetch(
    out: Annotated[Path, typer.Option(help="Folder that gets a folder for each data set, such as scone/ and glove/.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A data set: scone, glove, sail or math; repeat it for several. Default: scone and glove.",
            autocompletion=complete_source,
        ),
    ] = None,
) -> None:
    """Download SCONE and GloVe 6B (860 MB, of which 350 MB are kept), or the data sets named, and verify them.

    What is there already is not downloaded again. After a broken download, run the command again. sail is the SAIL
    navigation corpus with its maps (GPL-2), math the word problems that come with SVAMP (MIT).

    Example: vbsix data fetch --out data --only sail
    """
    from vbsix.data.download import SOURCES, USUAL, fetch

    names = only or USUAL
    for path in fetch(out, names):
        typer.echo(path)
    typer.echo(f"{', '.join(SOURCES[name].title for name in names)}: in {out}")


@app.command()
def sail(
    out: Annotated[Path, typer.Option(help="Folder that the JSON lines are written to.")],
) -> None:
    """Write the SAIL navigation corpus as JSON lines, for leave-one-map-out cross-validation.

    The corpus is read where the domain sail finds its maps: in sail/ of the folder that VBSIX_DATA names, or else of
    data/, where `vbsix data fetch --only sail --out data` puts it.

    For each map: sentences-MAP.jsonl and sequences-MAP.jsonl to be evaluated on, sentences-without-MAP.jsonl and
    sequences-without-MAP.jsonl, of the other two maps, to learn from.

    Example: vbsix data sail --out sail
    """
    from vbsix.data.sail import convert_sail
    from vbsix.domains.sail_maps import sail_folder

    for path in convert_sail(sail_folder(), out):
        typer.echo(path)


@app.command()
def synth(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="alchemy, scene or tangrams.")],
    out: Annotated[Path, typer.Option(help="Folder that the files are written to.")],
    rows: Annotated[
        int, typer.Option(min=3, help="How many rows to make; 80% are for training, 10% for dev, 10% for test.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
) -> None:
    """Write made-up rows in SCONE's form, and the programs that they were made from beside them."""
    from vbsix.data.synthetic import write_corpus

    for path in write_corpus(domain, rows, seed, out):
        typer.echo(path)


@dataclass(frozen=True)
class FileReport:
    """What is in a data file; zeros where it has problems. Unknown words are None without a GloVe file."""

    file: str
    domain: str
    split: str
    problems: tuple[str, ...] = ()
    rows: int = 0
    examples: int = 0
    utterances: int = 0
    words: int = 0
    longest_utterance: int = 0
    vocabulary: int = 0
    unknown_words: int | None = None
    unknown_vocabulary: int | None = None
    max_words: int = 0
    """Words of an instruction that are read, by default."""
    cut: float = 0.0
    """The share of instructions with more words than that."""
    notes: tuple[str, ...] = ()
    """What may keep a run from learning, though the file can be used."""
    search: str = ""
    """What searches without a network reach, in a sentence."""


@dataclass(frozen=True)
class FolderReport:
    """What is in a folder of data files, and what was left unchecked there."""

    directory: str
    glove: str | None
    files: tuple[FileReport, ...]
    unchecked: tuple[str, ...]
    problems: tuple[str, ...]


def inspect_folder(directory: Path) -> FolderReport:
    """Reads every data file of a folder and of `scone/` and `glove/` in it."""
    from vbsix.data.dataset import no_folder
    from vbsix.data.download import GLOVE_FILE
    from vbsix.data.words import load_glove
    from vbsix.domains.registry import available_domains

    if not directory.is_dir():
        raise InvalidData([f"{directory}: {no_folder(directory)}"])
    inside = [directory / "scone", directory / "glove"]
    paths = [path for folder in [directory, *inside] if folder.is_dir() for path in sorted(folder.iterdir())]
    data, unchecked, problems = [], [], []
    glove = words = None
    for path in paths:
        domain = next((name for name in available_domains() if path.name.startswith(f"{name}-")), None)
        if path in inside:
            continue
        if path.suffix == ".tsv" and domain:
            data.append((path, domain, path.stem.removeprefix(f"{domain}-")))
        elif path.name == GLOVE_FILE:
            glove = path
        elif path.suffix == ".tsv":
            known = ", ".join(available_domains())
            problems.append(f"{path}: expected a name such as <domain>-train.tsv, with a domain out of {known}")
        else:
            unchecked.append(str(path))
    if glove:
        try:
            words = load_glove(glove)
        except InvalidData as error:
            problems += error.problems
    if not data:
        problems.append(f"{directory}: no data files (<domain>-<split>.tsv); `vbsix data fetch` downloads SCONE")
    files = tuple(_inspect_file(path, domain, split, words) for path, domain, split in data)
    return FolderReport(str(directory), glove and str(glove), files, tuple(unchecked), tuple(problems))


def inspect_json_lines(path: Path, domain: str | None) -> FolderReport:
    """Reads a file of JSON lines, and checks the domain that they are for."""
    from vbsix.data.dataset import check_own_domain, examine, share_cut
    from vbsix.data.json_lines import MOST_WORDS, read_json_lines, warnings_about

    if not domain:
        raise VbsixError("say which domain these examples are for: --domain NAME, or MODULE:CLASS for your own.")
    language = open_domain(domain)
    try:
        rows = read_json_lines(path, language)
        check_own_domain(language, rows)
        search, advice = examine(language, rows)
        report = _describe(path, language.name, "", rows, len(rows), None)
        most = min(report.longest_utterance, MOST_WORDS)
        report = replace(
            report,
            max_words=most,
            cut=share_cut(rows, most),
            search=search,
            problems=tuple(one.text for one in advice if one.is_wrong),
            notes=(*warnings_about(rows), *(one.text for one in advice if not one.is_wrong)),
        )
    except (InvalidData, InvalidDomain) as error:
        report = FileReport(str(path), language.name, "", error.problems)
    return FolderReport(str(path), None, (report,), (), ())


def _inspect_file(path: Path, domain: str, split: str, words: Words | None) -> FileReport:
    from vbsix.data.dataset import share_cut
    from vbsix.data.examples import PAPER_SETTINGS
    from vbsix.data.scone import read_rows, to_examples
    from vbsix.domains.registry import get_domain

    try:
        rows = read_rows(path, get_domain(domain))
        report = _describe(path, domain, split, rows, len(to_examples(rows, domain, split)), words)
        most = PAPER_SETTINGS[domain].max_words
        return replace(report, max_words=most, cut=share_cut(rows, most))
    except InvalidData as error:
        return FileReport(str(path), domain, split, error.problems)


def _describe(
    path: Path, domain: str, split: str, rows: Sequence[Row], examples: int, words: Words | None
) -> FileReport:
    from vbsix.data.words import UNKNOWN

    utterances = [utterance.lower().split() for row in rows for utterance in row.utterances]
    counts = Counter(word for utterance in utterances for word in utterance)
    unknown = [word for word in counts if words.lookup(word) == UNKNOWN] if words else None
    return FileReport(
        file=str(path),
        domain=domain,
        split=split,
        rows=len(rows),
        examples=examples,
        utterances=len(utterances),
        words=counts.total(),
        longest_utterance=max(map(len, utterances)),
        vocabulary=len(counts),
        unknown_words=None if unknown is None else sum(counts[word] for word in unknown),
        unknown_vocabulary=None if unknown is None else len(unknown),
    )


def _print_report(report: FolderReport) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from vbsix.data.words import GLOVE_LIMIT

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("file", no_wrap=True)
    for heading in ("rows", "examples", "mean", "most", "words", "unknown", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for file in report.files:
        table.add_row(Path(file.file).name, *_cells(file))
    notes = ["mean, most: words of an instruction. words: distinct ones."]
    notes += [
        f"{Path(file.file).name}: {file.cut:.1%} of the instructions have more than the {file.max_words} words that "
        "are read by default."
        for file in report.files
        if file.cut
    ]
    notes += [file.search for file in report.files if file.search]
    if report.glove:
        among = f"the first {GLOVE_LIMIT:,} words of {report.glove}"
        notes.append(f"unknown, share: those not among {among}, and their share of the text.")
    else:
        notes.append("unknown, share: not counted, as there is no GloVe file here.")
    if report.unchecked:
        notes.append("Left unchecked, as they are no data files: " + ", ".join(report.unchecked))
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print("\n".join(notes), soft_wrap=True)
    for file in report.files:
        for note in file.notes:
            typer.echo(f"note: {note}", err=True)
    for problems in [report.problems, *(file.problems for file in report.files)]:
        for problem in problems[:SHOWN_PROBLEMS]:
            typer.echo(problem, err=True)
        if len(problems) > SHOWN_PROBLEMS:
            typer.echo(f"... and {len(problems) - SHOWN_PROBLEMS} more problems there (--json has them all)", err=True)


def _cells(file: FileReport) -> list[str]:
    if not file.utterances:
        return ["invalid"]
    length = f"{file.words / file.utterances:.1f}"
    cells = [str(file.rows), str(file.examples), length, str(file.longest_utterance), str(file.vocabulary)]
    if file.unknown_words is not None:
        cells += [str(file.unknown_vocabulary), f"{file.unknown_words / file.words:.1%}"]
    return cells
