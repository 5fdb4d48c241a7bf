"""Run folders and data that were damaged or changed."""
from base_runs import BaseRuns, answer, normalised
from folder_cases import all_cases
from table import Verdict
from trees import changes, snapshot

SECONDS, MEMORY_MIB = 10, 512


class Folders:
    """Run folders and data that were damaged, edited or replaced: resume, eval, predict and sample say so or refuse, and
    the verbs that look after runs touch nothing outside."""
    name, full_tries = "folders", 1300

    def __init__(self, program, folder, table):
        self.program, self.base, self.cases = program, BaseRuns(program, folder), all_cases()

    def close(self):
        pass

    def attempt(self, number, dice):
        case = self.cases[number % len(self.cases)]
        # A step that only exists after the change has no untouched answer.
        known = case.verb if case.verb.split("-")[-1] not in ("60", "9") else case.verb.split("-")[0] + "-last"
        reference, usual = self.base.reference(case.kind, known)
        self.base.fresh(case.kind)
        done = case.change(self.base, dice)
        wanted = case.wants(self.base) if case.wants else case.wanted
        before, outside = snapshot(self.base.run), snapshot(self.base.outside)
        words = self.base.words(case.verb, case.kind)
        outcome = self.program.run(*words, *case.more, seconds=SECONDS)
        why = self._problem(case, wanted, outcome, reference, usual)
        command = f"{outcome.command()}   # {done}"
        yield Verdict(case.test, case.item, not why, f"{done}: {why} ({outcome.brief()})", command)
        touched = changes(outside, snapshot(self.base.outside))
        yield Verdict("nothing outside the folder is touched", 4, not touched, f"{done}: outside, {touched}", command)
        after = snapshot(self.base.run)
        if outcome.code == 2 and case.verb.startswith("resume"):
            yield Verdict("a refused resume changes nothing", 12, after == before, f"{done}: {changes(before, after)}", command)
        if case.verb.split("-")[0] in ("eval", "predict", "sample"):
            yield Verdict("eval, predict and sample change nothing", 3, after == before, f"{done}: {changes(before, after)}",
                          command)

    def _problem(self, case, wanted, outcome, reference, usual):
        """Why the outcome is not what is wanted; empty if it is."""
        if outcome.hung:
            return "it hangs"
        if outcome.code not in (0, 2):
            return "neither done nor refused (exit 2)"
        if outcome.peak_mib > MEMORY_MIB:
            return "too much memory"
        notes = [line for line in outcome.err.splitlines() if normalised(line) not in usual]
        named = any(word in line for word in case.words for line in notes)
        if wanted == "calm":
            return ""
        if outcome.code == 2:
            return "" if named else "refused, but nothing names the cause"
        if wanted == "refused":
            return "accepted"
        if named:
            return ""
        if wanted == "said":
            return "accepted in silence"
        return "" if answer(case.verb, outcome) == reference else "another answer in silence"
