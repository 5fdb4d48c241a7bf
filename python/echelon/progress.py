"""How a run is shown while it trains: a bar in a terminal, an updated block in a notebook, lines elsewhere."""
from __future__ import annotations

import sys
import time
from typing import Any, Dict, Mapping, Optional


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    try:
        from IPython import get_ipython  # type: ignore
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def line_of(event: Mapping[str, Any], width: int = 30) -> str:
    """One line about a step: bar, loss, speed, and how long it will take."""
    share = event["step"] / max(1, event["total_steps"])
    filled = int(share * width)
    bar = "█" * filled + "·" * (width - filled)
    accuracy = f"  accuracy {100 * event['accuracy']:.1f} %" if event.get("accuracy", 0) > 0 else ""
    return (f"{bar} {event['step']}/{event['total_steps']}  epoch {event['epoch']:.1f}  loss {event['loss']:.4f}"
            f"{accuracy}  {event['samples_per_s']:.0f} samples/s  {event['eta_seconds']:.0f} s left")


def evaluation_line(event: Mapping[str, Any]) -> str:
    values = "  ".join(f"{name} {value:.4f}" for name, value in event["metrics"].items())
    return f"step {event['step']}  {values}{'  (best so far)' if event.get('best') else ''}"


class Progress:
    """Shows events of a run. `out` is sys.stderr unless it is given."""

    def __init__(self, out: Any = None) -> None:
        self.out = out or sys.stderr
        self.lines: list = []
        self.live = bool(getattr(self.out, "isatty", lambda: False)())
        self.handle: Any = None
        self.notebook = out is None and in_notebook()
        self.last = 0.0
        self.drawn = 0

    def step(self, event: Dict[str, Any]) -> None:
        last_step = event["step"] == event["total_steps"]
        if time.monotonic() - self.last < 0.1 and not last_step:
            return
        if self.notebook:
            self._show_block(line_of(event))
        elif self.live:
            text = line_of(event)
            self.out.write("\r" + text + " " * max(0, self.drawn - len(text)))
            self.out.flush()
            self.drawn = len(text)
        self.last = time.monotonic()

    def evaluation(self, event: Dict[str, Any]) -> None:
        self.say(evaluation_line(event))

    def say(self, text: str) -> None:
        if self.notebook:
            self.lines.append(text)
            self._show_block("")
            return
        self._clear()
        print(text, file=self.out, flush=True)

    def finish(self) -> None:
        if self.notebook:
            self._show_block("")
        self._clear()

    def _clear(self) -> None:
        if self.live and self.drawn:
            self.out.write("\r" + " " * self.drawn + "\r")
            self.out.flush()
            self.drawn = 0

    def _show_block(self, bar: str) -> None:
        from IPython.display import display  # type: ignore
        block = _Block("\n".join(self.lines[-20:] + ([bar] if bar else [])))
        if self.handle is None:
            self.handle = display(block, display_id=True)
        else:
            self.handle.update(block)


class _Block:
    """Text that a notebook shows in a fixed-width font and replaces as a whole."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        import html
        return f"<pre>{html.escape(self.text)}</pre>"

    def __repr__(self) -> str:
        return self.text


def make_progress(wanted: Optional[bool]) -> Optional[Progress]:
    """None: a bar where somebody can see it."""
    if wanted is False:
        return None
    progress = Progress()
    return progress if wanted or progress.live or progress.notebook else None
