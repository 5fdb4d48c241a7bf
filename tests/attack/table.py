"""What was tried and what came of it: one row for each kind of attack."""
import dataclasses


@dataclasses.dataclass
class Verdict:
    """One thing that was checked: `item` is the number in the list of promises that the test belongs to."""
    test: str
    item: int
    held: bool
    why: str = ""
    command: str = ""


@dataclasses.dataclass
class Row:
    item: int
    tries: int = 0
    held: int = 0
    failures: list = dataclasses.field(default_factory=list)


class Table:
    def __init__(self, examples=1):
        self.rows, self.notes, self.examples = {}, [], examples

    def add(self, suite, number, verdict):
        row = self.rows.setdefault(f"{suite}: {verdict.test}", Row(verdict.item))
        row.tries += 1
        row.held += verdict.held
        if not verdict.held:
            row.failures.append((number, verdict))

    def note(self, text):
        """A figure that is reported and not judged, or why something was left out."""
        self.notes.append(text)

    def failed(self):
        return sum(len(row.failures) for row in self.rows.values())

    def print(self, replay):
        """`replay(suite, number)` is the command that makes one try again."""
        width = max((len(name) for name in self.rows), default=4)
        print(f"\n{'test':{width}}  item  tries   held  failed")
        for name, row in sorted(self.rows.items()):
            print(f"{name:{width}}  {row.item:4}  {row.tries:5}  {row.held:5}  {len(row.failures):6}")
        tries, held = (sum(getattr(row, key) for row in self.rows.values()) for key in ("tries", "held"))
        print(f"{'all':{width}}        {tries:5}  {held:5}  {tries - held:6}")
        for note in self.notes:
            print(f"note: {note}")
        for name, row in sorted(self.rows.items()):
            for number, verdict in row.failures[:self.examples]:
                print(f"\nFAILED {name} (item {row.item}), try {number}: {verdict.why}")
                if verdict.command:
                    print(f"  command: {verdict.command}")
                print(f"  again:   {replay(name.split(':')[0], number)}")
