from __future__ import annotations

import itertools
from typing import Any

from tropel.pictures import style
from tropel.pictures.map import Label, place_labels


def placed(labels: list[Label], **more: Any) -> tuple[Any, Any]:
    figure = style.new_figure(600, 400)
    axes = style.add_axes(figure, 0, 0, 600, 400)
    axes.set_xlim(0.0, 60.0)
    axes.set_ylim(0.0, 40.0)
    place_labels(axes, labels, **more)
    return axes, [text.get_window_extent() for text in axes.texts]


def point(x: float, y: float) -> tuple[float, float, float, float]:
    return (x, y, x, y)


def test_names_of_things_close_together_do_not_cover_each_other() -> None:
    labels = [Label(text=f"exit {k}", box=point(30.0 + k, 20.0), colour="black") for k in range(5)]
    _, boxes = placed(labels)
    assert len(boxes) == 5
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_name_stays_on_the_map() -> None:
    axes, (box,) = placed([Label(text="a name at the top", box=point(30.0, 39.9), colour="black", sides=("above",))])
    frame = axes.get_window_extent()
    assert box.y1 <= frame.y1
    assert box.x0 >= frame.x0


def test_a_name_that_is_not_required_is_left_out_where_it_would_cover_another() -> None:
    first = Label(text="important", box=point(30.0, 20.0), colour="black", sides=("above",))
    second = Label(text="region", box=point(30.0, 20.0), colour="black", sides=("above",), required=False)
    axes, _ = placed([first, second])
    assert [text.get_text() for text in axes.texts] == ["important"]


def test_a_name_avoids_what_it_is_told_to() -> None:
    label = Label(text="door", box=point(30.0, 20.0), colour="black", sides=("right", "left"))
    _, (free,) = placed([label])
    _, (moved,) = placed([label], avoid=[(30.5, 18.0, 36.0, 22.0)])
    assert free.x0 > 300
    assert moved.x1 < 300


def test_names_with_dollars_are_not_formulas_and_long_ones_keep_their_end() -> None:
    axes, _ = placed([Label(text="costs $5 and ^2 and $7 number 19", box=point(30.0, 20.0), colour="black")])
    (text,) = axes.texts
    assert text.get_text().startswith("costs $5")
    assert text.get_text().endswith("umber 19")
    assert len(text.get_text()) <= 26
