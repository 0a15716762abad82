"""Runs that others published, fetched from where they published them.

No file of others comes with this library. :func:`load` looks into the folder that the
variable ``CHINCHILLA_LAB_DATA`` names, then into its own cache, then fetches the file
from its origin at a pinned commit; the hash of the content is checked every time.
"""

import csv
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chinchilla_lab.checks import one_of
from chinchilla_lab.fitting.reading import read_runs
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import NCount
from chinchilla_lab.tables import html_table

__all__ = ["DATASETS", "Dataset", "MissingDataError", "load", "locate", "table"]

_FOLDER = "CHINCHILLA_LAB_DATA"


class MissingDataError(FileNotFoundError):
    """A file of others is neither here nor can it be fetched."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A published file, its origin and its licence.

    Parameters
    ----------
    name : str
        Key in :data:`DATASETS`; the file is this name with ``.csv``, [-]
    about : str
        What its rows are, [-]
    cite : str
        Key in ``book/references.bib``, [-]
    origin : str
        Repository, path and commit, [-]
    licence : str
        Licence of the repository, or that it has none, [-]
    sha256 : str
        Hash of the file, [-]
    url : str, optional
        Address of the file at its commit; empty where the file is reduced from several
        and has to be prepared, [-]
    reduced : str, optional
        How the file was made from its origin, [-]
    columns : mapping, optional
        Its columns for :func:`~chinchilla_lab.fitting.read_runs`; empty for tables
        that hold no runs, [-]
    N_counts : str, optional
        Which parameters N counts, where the origin says so, [-]
    several : tuple of str, optional
        Columns for each of whose values a run has a row, [-]
    """

    name: str
    about: str
    cite: str
    origin: str
    licence: str
    sha256: str
    url: str = ""
    reduced: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    N_counts: NCount | None = None
    several: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.csv"

    def _repr_html_(self) -> str:
        return html_table(_HEADER, [_cells(self)])


_HEADER = ("name", "content", "origin", "licence", "source", "fetched by the library")


def _cells(data: Dataset) -> tuple[str, ...]:
    fetched = "yes" if data.url else f"no: {data.reduced}"
    return data.name, data.about, data.origin, data.licence, data.cite, fetched


class _Catalogue(dict[str, Dataset]):
    """All data sets by name; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return html_table(_HEADER, [_cells(data) for data in self.values()])


_PORIAN = (
    "formll/resolving-scaling-law-discrepancies, data/summary_df.pickle.xz, 0dc60d91"
)
_RAW = "https://raw.githubusercontent.com"

DATASETS: Mapping[str, Dataset] = _Catalogue(
    (data.name, data)
    for data in (
        Dataset(
            name="chinchilla_epoch245",
            about="245 runs of the Chinchilla paper, digitised from its Figure 4",
            cite="besiroglu2024chinchilla",
            origin="epoch-research/analyzing-chinchilla, data/svg_extracted_data.csv, "
            "92258837",
            licence="none in the repository",
            sha256="193478df4e90f040016431996c45682659306840ecdadf83cfb9cd5ca0aa1b30",
            url=f"{_RAW}/epoch-research/analyzing-chinchilla/"
            "92258837425e1b5f2851d624287f0120583a3d0e/data/svg_extracted_data.csv",
            columns={"N": "Model Size", "C": "Training FLOP", "L": "loss"},
            N_counts="total",
        ),
        Dataset(
            name="chinchilla_kyotakano234",
            about="234 of the same runs, without the highest losses",
            cite="takano2024chinchilla",
            origin="kyo-takano/chinchilla, examples/llm/df.csv, 75e5858f",
            licence="Apache-2.0",
            sha256="2ed2c412c6b408cb26896b92c0721fe9afa6515726b0db78c33db37cbf2816f9",
            url=f"{_RAW}/kyo-takano/chinchilla/"
            "75e5858f6e7c5b60d1fab69f66258132347b060c/examples/llm/df.csv",
            columns={"N": "N", "D": "D", "C": "C", "L": "loss"},
            N_counts="total",
        ),
        Dataset(
            name="sardana_47runs",
            about="47 models trained on 10 to 10,000 tokens per parameter",
            cite="sardana2024beyond",
            origin="nikhilsardana/beyond-chinchilla, trainingresults.csv, 190f70e3",
            licence="Apache-2.0",
            sha256="76177d2804ec448cbdd183b52d058b3362ea52965bb7bc0289ba387da969a3de",
            url=f"{_RAW}/nikhilsardana/beyond-chinchilla/"
            "190f70e365dc75037a2b3178609d00243f24b4b9/trainingresults.csv",
            columns={"N": "Parameters", "D": "Tokens", "L": "Smoothed Loss"},
            N_counts="total",
        ),
        Dataset(
            name="olmo_ladder_final",
            about="30 small runs, 5 sizes by 5 lengths and 5 reruns, three losses each",
            cite="bhagia2024ladder",
            origin="allenai/OLMo-ladder, src/scripts/paper/data/ladder-runs/*.csv, "
            "67a3f440",
            licence="Apache-2.0",
            sha256="075b91eb93262af60d2a7e4695269b9a8b8580a23d460718d63448c49848ddae",
            reduced="last evaluated row of each run",
            columns={"N": "N", "D": "tokens", "L": "c4_loss"},
            N_counts="non_embedding",
        ),
        Dataset(
            name="gadre_testbed",
            about="104 models, each on eight validation sets",
            cite="gadre2024language",
            origin="mlfoundations/scaling, exp_data/models/*.json, a003c491",
            licence="MIT",
            sha256="7654cf997486287063b6a89ccfae2cc1315b8735623da3b20c99f636017f6a22",
            reduced="one row a model and validation set: name, train_set, N, "
            "N_no_embed, D, val, loss",
            columns={"N": "N", "D": "D", "L": "loss"},
            N_counts="total",
            several=("val",),
        ),
        Dataset(
            name="datablations_c4",
            about="296 runs on C4 with one to many epochs",
            cite="muennighoff2023scaling",
            origin="huggingface/datablations, utils/parametric_fit.ipynb, 13701315",
            licence="Apache-2.0",
            sha256="1697978d41baf131d5573a2c9d11798ed689e081ce98b9ceb8cc2197aae6bded",
            reduced="dictionary of cell 1 with the notebook's rules for names: run, N, "
            "D, U, val_loss, epochs",
            columns={"N": "N", "D": "D", "L": "val_loss"},
            N_counts="total",
        ),
        Dataset(
            name="porian_isoflop_rw",
            about="579 runs on RefinedWeb, five ways to run the experiment",
            cite="porian2024resolving",
            origin=_PORIAN,
            licence="MIT",
            sha256="cb2bcc1594d1428204b7fa60f97905f8787f3f10a9bb0d5cbee0821e826b6240",
            reduced="the summary is a pickle, which this library never opens; one row "
            "a run of its pairs",
            columns={"N": "N", "D": "D", "C": "flops", "L": "loss"},
        ),
        Dataset(
            name="porian_optima_rw",
            about="59 optima that the authors found on these runs",
            cite="porian2024resolving",
            origin=_PORIAN,
            licence="MIT",
            sha256="cabaa98c2dbb4858e080b953d477a2a59b14028dfa62f5de19038fb8683a5730",
            reduced="the summary is a pickle, which this library never opens; one row "
            "a budget",
        ),
    )
)
"""Every data set by name."""


def locate(name: str) -> Path:
    """Return the path of a data set's file, fetched if need be, its hash checked.

    Parameters
    ----------
    name : str
        Key in :data:`DATASETS`, [-]

    Returns
    -------
    pathlib.Path
        The file, [-]

    Raises
    ------
    MissingDataError
        If it is not in the folder, not in the cache and cannot be fetched; names the
        file, its origin and the variable.
    ValueError
        If the file in the folder has another content than the pinned one.
    """
    one_of("name", name, DATASETS)
    data = DATASETS[name]
    folder = os.environ.get(_FOLDER, "")
    folder = os.path.expanduser(folder)
    if folder:
        file = Path(folder) / data.file
        if file.is_file():
            found = hashlib.sha256(file.read_bytes()).hexdigest()
            if found != data.sha256:
                raise ValueError(
                    f"{file} has SHA-256 {found[:12]}..., pinned is "
                    f"{data.sha256[:12]}...; restore it from {data.origin}, or read "
                    "your own version with fitting.read_runs"
                )
            return file
    looked = f"{_FOLDER}={folder}" if folder else f"{_FOLDER} (not set)"
    way_out = f"put {data.file} into a folder and name it in {_FOLDER}"
    if not data.url:
        raise MissingDataError(
            f"{data.file} is not in {looked} and is not one file at its origin "
            f"({data.origin}: {data.reduced}); {way_out}"
        )
    try:
        import pooch

        pooch.get_logger().setLevel("WARNING")
    except ImportError:
        raise MissingDataError(
            f"{data.file} is not in {looked}, and fetching it from {data.url} needs "
            f"pooch (pip install chinchilla_lab[data]); or {way_out}"
        ) from None
    try:
        return Path(
            pooch.retrieve(
                data.url,
                known_hash=f"sha256:{data.sha256}",
                fname=data.file,
                path=pooch.os_cache("chinchilla_lab"),
                progressbar=False,
            )
        )
    # requests, urllib3 and the socket each raise their own kinds
    except Exception as error:
        raise MissingDataError(
            f"{data.file} is not in {looked} and could not be fetched from {data.url} "
            f"({type(error).__name__}); {way_out}"
        ) from None


def load(
    name: str,
    keep: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    N_counts: NCount | None = None,
) -> Runs:
    """Load the runs of a data set.

    Parameters
    ----------
    name : str
        Key in :data:`DATASETS`, [-]
    keep : mapping, optional
        Values to keep by column of the file, [-]
    columns : mapping, optional
        Other columns than the usual ones, such as ``{"L": "pile_loss"}``, [-]
    N_counts : str, optional
        Which parameters N counts, where the origin does not say or another column of
        sizes is read, [-]

    Returns
    -------
    Runs
        The runs; ``source`` is their citation, [-]

    Raises
    ------
    MissingDataError
        If the file is not at hand.
    """
    one_of("name", name, DATASETS)
    data = DATASETS[name]
    if not data.columns:
        raise ValueError(f"name={name!r} holds no runs; read it with table({name!r})")
    for column in data.several:
        if not isinstance((keep or {}).get(column), str):
            raise ValueError(
                f"{name} holds each run once for every {column}; say which, with "
                f"keep={{{column!r}: ...}}"
            )
    # every row is a finished run, whatever other columns are called
    every: dict[str, str] = {"run": "", "state": "", "planned": ""}
    other_N = columns is not None and "N" in columns
    return read_runs(
        locate(name),
        columns={**every, **data.columns, **(columns or {})},
        keep=keep or {},
        N_counts=N_counts or (None if other_N else data.N_counts),
        source=f"{data.name} ({data.cite}; {data.origin})",
    )


def table(name: str) -> list[dict[str, str]]:
    """Return the cells of a data set as text, one dict a row.

    Parameters
    ----------
    name : str
        Key in :data:`DATASETS`, [-]

    Returns
    -------
    list of dict
        Cells by column, [-]

    Raises
    ------
    MissingDataError
        If the file is not at hand.
    """
    return list(csv.DictReader(locate(name).read_text(encoding="utf-8").splitlines()))
