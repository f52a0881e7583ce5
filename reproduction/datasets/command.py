"""`python -m reproduction datasets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, print_table, show_activity

if TYPE_CHECKING:
    from reproduction.datasets import Dataset


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data.  [default: $RANKTRON_DATA]")
@click.option("--check", is_flag=True, help="Compare sizes and checksums of the files that were found.")
@as_json
def datasets(name: str | None, data: str | None, check: bool, as_json: bool) -> None:
    """List the data sets of the papers, and where to get them.

    Shows their sizes and licences, and whether they were found in --data. With NAME: everything that is known about
    one of them. Nothing is downloaded, as most data sets require an agreement.

    Example: python -m reproduction datasets --data DIR
    """
    from reproduction.datasets import DATASETS, dataset

    chosen = [dataset(name)] if name else list(DATASETS.values())
    folder = _folder(data)
    rows = [_row(one, folder, check) for one in chosen]
    if as_json:
        print_json({"data": folder, "datasets": rows})
    elif name:
        _print_one(chosen[0], rows[0])
    else:
        _print_all(chosen, rows, folder)


def _folder(data: str | None) -> str | None:
    from ranktron.errors import DataError
    from reproduction.datasets import data_folder

    try:
        return str(data_folder(data))
    except DataError:
        return None


def _row(one: Dataset, folder: str | None, check: bool) -> dict[str, Any]:
    from reproduction.datasets import absent, known_files

    missing = absent(one.name, folder) if folder else list(one.places)
    sums = {place: file._asdict() for place, file in known_files(one.name).items()}
    content: dict[str, Any] = {
        "name": one.name,
        "title": one.title,
        "kind": one.kind,
        "papers": list(one.papers),
        "queries": one.queries,
        "documents": one.documents,
        "features": one.features,
        "labels": one.labels,
        "licence": one.licence,
        "source": one.source,
        "url": one.url,
        "where": one.where,
        "format": one.format,
        "folder": one.folder,
        "archive": vars(one.archive) if one.archive else None,
        "files": {place: sums.get(place) for place in one.places},
        "found": not missing,
        "missing": missing,
    }
    return content | ({"check": _check(one, folder)} if check and not missing else {})


def _check(one: Dataset, folder: str | None) -> str:
    from ranktron.errors import DataError
    from reproduction.datasets import verify_file

    try:
        with show_activity(f"checking {one.name}"):
            results = [verify_file(one.name, place, folder) for place in one.places]
    except DataError as error:
        return str(error)
    if all(results):
        return "checksums match"
    return "known checksums match" if any(results) else "no checksums known"


def _print_all(chosen: list[Dataset], rows: list[dict[str, Any]], folder: str | None) -> None:
    table = [
        (
            one.name,
            " ".join(one.papers) or "–",
            _count(one.queries),
            _count(one.documents),
            one.features,
            _size(row),
            _describe_location(row),
        )
        for one, row in zip(chosen, rows, strict=True)
    ]
    columns = ["name", "paper", "queries", "documents", "features", "size", "found"]
    where = f"data sets in {folder}" if folder else "data sets (to look for them, give --data or set RANKTRON_DATA)"
    print_table(where, columns, table)
    homes: dict[tuple[str, str, str], list[Dataset]] = {}
    for one in chosen:
        homes.setdefault((one.source, one.url, one.licence), []).append(one)
    for (source, url, licence), sets in homes.items():
        click.echo(f"{source}: {', '.join(one.name for one in sets)}\n  from     {url}\n  licence  {licence}")
        click.echo("\n".join(f"  files    {files}" for files in dict.fromkeys(_files(one) for one in sets)) + "\n")
    click.echo("More about one of them: python -m reproduction datasets NAME")


def _files(one: Dataset) -> str:
    """The files of a data set on one line: five folds as one, and NAME for a folder with the name of the set."""
    places = (place.replace("Fold1", "Fold1…5") for place in one.folds[0])
    folder = "NAME" if one.folder == one.name else one.folder
    return ", ".join(f"{folder}/{place}{one.ending}" for place in places)


def _print_one(one: Dataset, row: dict[str, Any]) -> None:
    counts = [(one.queries, "queries"), (one.documents, "documents" if one.kind == "ranking" else "examples")]
    holds = [f"{_count(count)} {noun}" for count, noun in counts if count] + [f"{one.features} features"]
    print_table(one.title, ["", ""], [
        ("name", one.name),
        ("used by", ", ".join(one.papers) or "none of the papers"),
        ("contents", ", ".join(holds)),
        ("labels", f"{'grades' if one.kind == 'ranking' else 'values'} {one.labels}"),
        ("size", _size(row) if _size(row) != "–" else "not known"),
        ("licence", one.licence),
        ("from", f"{one.source}\n{one.url}"),
        ("files", _files(one).replace(", ", "\n").replace("NAME", one.name)),
        ("format", one.format),
        ("found", _describe_location(row)),
    ])  # fmt: skip


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _describe_location(row: dict[str, Any]) -> str:
    if "check" in row:
        return str(row["check"])
    if row["found"]:
        return "yes"
    return "no" if len(row["missing"]) == len(row["files"]) else "part"


def _size(row: dict[str, Any]) -> str:
    """The size of the download if it is known, otherwise that of the files."""
    packed = (row["archive"] or {}).get("bytes")
    sizes = [file and file["bytes"] for file in row["files"].values()]
    total = packed or (sum(sizes) if all(sizes) else None)
    if total is None:
        return "–"
    unit, name = next((u, n) for u, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if total >= u)
    return f"{total / unit:.1f} {name}"
