"""The page of a verification: one HTML file with all verdicts and pictures, which needs no network and no scripts."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tropel.errors import RecordingError
from tropel.foundation.files import replacing
from tropel.pictures import style
from tropel.verification.verdict import Verdict

_STYLE = f"""
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; max-width: 1180px; padding: 28px 32px 80px; background: {style.PAPER}; color: {style.INK};
  font: 15px/1.55 "DejaVu Sans", system-ui, sans-serif; }}
h1 {{ font-size: 24px; margin: 0 0 4px; }}
h2 {{ font-size: 18px; margin: 56px 0 2px; padding-top: 14px; border-top: 1px solid {style.RULE}; }}
h3 {{ font-size: 14px; margin: 18px 0 6px; }}
.models {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 0 28px; }}
p {{ margin: 6px 0; max-width: 80ch; }}
a {{ color: {style.label_colour(style.THERE)}; text-decoration: none; }}
a:hover {{ text-decoration: underline; }}
.faint {{ color: {style.FAINT_INK}; }}
table {{ border-collapse: collapse; font-size: 13px; line-height: 1.4; }}
.cases {{ width: 100%; margin-top: 22px; }}
th, td {{ text-align: left; vertical-align: top; padding: 7px 12px 7px 0; border-bottom: 1px solid {style.RULE}; }}
th {{ font-weight: bold; border-bottom: 1.5px solid {style.INK}; position: sticky; top: 0; background: {style.PAPER}; }}
.cases td.verdict {{ padding-left: 10px; border-left: 4px solid {style.RULE}; min-width: 150px; }}
.cases td.passed {{ border-left-color: {style.EXIT}; }}
.cases td.failed {{ border-left-color: {style.CLOSED_DOOR};
  background: {style.mixed(style.CLOSED_DOOR, style.PAPER, 0.07)}; }}
.mark {{ font-weight: bold; }}
.passed .mark {{ color: {style.label_colour(style.EXIT)}; }}
.failed .mark {{ color: {style.label_colour(style.CLOSED_DOOR)}; }}
.absent .mark {{ color: {style.FAINT_INK}; font-weight: normal; }}
img {{ display: block; width: 100%; max-width: 760px; border: 1px solid {style.RULE}; margin: 8px 0; }}
.values td, .values th {{ padding: 3px 18px 3px 0; position: static; }}
details summary {{ cursor: pointer; color: {style.FAINT_INK}; font-size: 13px; }}
"""

_ABOUT = (
    "Cases of the RiMEA guideline, of NIST Technical Note 1822 and from published measurements, run with tropel. Each "
    "is a built-in scene; a verdict is over several seeds. Failures are shown like everything else."
)


def write_page(verdicts: Sequence[Verdict], path: Path, *, note: str = "") -> Path:
    """Write the page: a table of cases and models, then each case with its criterion, pictures and values."""
    page = _page(verdicts, note)
    try:
        with replacing(path) as file:
            file.write(page.encode())
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}; choose another --out") from error
    return path


def _page(verdicts: Sequence[Verdict], note: str) -> str:
    models = {verdict.model: verdict.default for verdict in verdicts}
    cases: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        cases.setdefault(verdict.name, {})[verdict.model] = verdict
    body = [
        "<h1>Verification</h1>",
        f"<p>{_ABOUT}</p>",
        f"<p class=faint>{html.escape(_counts(verdicts, models))}</p>",
        f"<p class=faint>{html.escape(note)}</p>" if note else "",
        _table(cases, models),
        *(_section(name, own) for name, own in cases.items()),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>tropel: verification</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _counts(verdicts: Sequence[Verdict], models: Iterable[str]) -> str:
    said = []
    for model in models:
        own = [verdict for verdict in verdicts if verdict.model == model and verdict.applies]
        said.append(f"{model}: {sum(verdict.passed for verdict in own)} of {len(own)} cases passed")
    return "; ".join(said)


def _table(cases: dict[str, dict[str, Verdict]], models: dict[str, bool]) -> str:
    head = "".join(
        f"<th>{html.escape(model)}{' (default)' if default else ''}</th>" for model, default in models.items()
    )
    rows = []
    for name, own in cases.items():
        some = next(iter(own.values()))
        cells = "".join(_cell(own.get(model)) for model in models)
        what = f'<a href="#{name}"><b>{name}</b></a><br>{html.escape(some.title)}'
        rows.append(f"<tr><td>{what}<br><span class=faint>{html.escape(some.expected)}</span></td>{cells}</tr>")
    return f"<table class=cases><thead><tr><th>case</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td></td>"
    said = html.escape(verdict.said)
    return f'<td class="verdict {_kind(verdict)}"><span class=mark>{verdict.outcome.lower()}</span><br>{said}</td>'


def _kind(verdict: Verdict) -> str:
    return "passed" if verdict.passed else "failed" if verdict.failed else "absent"


def _section(name: str, own: dict[str, Verdict]) -> str:
    some = next(iter(own.values()))
    parts = [
        f'<h2 id="{name}">{name}: {html.escape(some.title)}</h2>',
        f"<p class=faint>Source: {html.escape(some.source)}. Run the scene with <code>tropel demo {name}</code>.</p>",
        f"<p>{html.escape(some.criterion)}</p>",
    ]
    if some.required < 1.0:
        parts.append(f"<p class=faint>At least {some.required:.0%} of the seeds must pass.</p>")
    parts.append("<div class=models>")
    for model, verdict in own.items():
        parts.append(f'<div class="{_kind(verdict)}"><h3>{html.escape(model)}: <span class=mark>'
                     f"{verdict.outcome.lower()}</span></h3>")  # fmt: skip
        if verdict.picture is None:
            parts.append(f"<p>{html.escape(verdict.said)}</p>")
        else:
            parts.append(_image(verdict.picture, f"{name} with {model}: {verdict.said}"))
        if verdict.measured:
            parts.append(_values(verdict))
        parts.append("</div>")
    parts.append("</div>")
    return "\n".join(parts)


def _image(picture: Path, about: str) -> str:
    data = base64.b64encode(picture.read_bytes()).decode()
    return f'<img alt="{html.escape(about)}" src="data:image/png;base64,{data}">'


def _values(verdict: Verdict) -> str:
    """What was measured: a row per quantity, a column per seed."""
    names = list(dict.fromkeys(name for seed in verdict.measured for name in seed))
    head = "".join(f"<th>seed {seed}{'' if passed else ' ✗'}</th>"
                   for seed, passed in zip(verdict.seeds, verdict.passes, strict=True))  # fmt: skip
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td>"
        + "".join(f"<td>{html.escape(_shown(seed.get(name)))}</td>" for seed in verdict.measured)
        + "</tr>"
        for name in names
    )
    table = f"<table class=values><tr><th></th>{head}</tr>{rows}</table>"
    return f"<details><summary>measured values</summary>{table}</details>"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_shown(each) for each in value)
    return str(value)
