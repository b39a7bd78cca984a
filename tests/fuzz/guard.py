"""Try cases in a child process, so that a crash or an endless loop is counted and others go on.

The child has an alarm of processor time, which a busy machine does not set off.
"""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fuzz.trials import Trials

SECONDS = 60.0  # of the processor, for a case
WAIT = 1800.0  # seconds without a word, after which a child waits for something that never comes


@dataclass
class Found:
    """What became of cases.

    Attributes
    ----------
    outcomes : Counter
        How many cases of a kind were read, refused and so on.
    wrong : list of tuple
        Kind and seed of every defect, and what was said.
    commands : int
        Commands that were run.
    slowest : tuple of float, str, int
        Processor seconds, kind and seed of the case that took longest.
    """

    outcomes: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    commands: int = 0
    slowest: tuple = (0.0, "", 0)


def try_cases(cases, make=Trials, *, seconds=SECONDS, wait=WAIT, tell=lambda found: None):
    """Try cases, pairs of a kind and a seed; `tell` hears of every case.

    A new child goes on behind the case that ended the last one.
    """
    cases, found = list(cases), Found()
    while cases:
        answers, end = os.pipe()
        child = os.fork()
        if not child:
            os.close(answers)
            _work(cases, make, seconds, end)
        os.close(end)
        tried, waited = _listen(answers, found, wait, tell)
        os.close(answers)
        if waited:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if tried < len(cases):
            what = f"it waited for {wait:g} s" if waited else _name(status, seconds)
            found.wrong.append((*cases[tried], what))
            tell(found)
        cases = cases[tried + 1 :]
    return found


def _work(cases, make, seconds, end):
    """Try cases in a child, and write a line about each."""
    code = 1
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, even within C
        with tempfile.TemporaryDirectory() as folder, make(folder) as trials:
            for kind, seed in cases:
                before, trials.commands = os.times(), 0
                signal.setitimer(signal.ITIMER_PROF, seconds)
                outcome, error = "", ""
                try:
                    outcome = trials.try_case(kind, seed)
                except Exception:
                    error = traceback.format_exc()[-3000:]
                signal.setitimer(signal.ITIMER_PROF, 0)
                took = sum(os.times()[:2]) - sum(before[:2])
                line = json.dumps([kind, seed, outcome, error, trials.commands, took])
                os.write(end, line.encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def _listen(answers, found, wait, tell):
    """Read what a child tells; return how many cases it tried, and whether it fell silent."""
    tried, rest = 0, b""
    while True:
        if not select.select([answers], [], [], wait)[0]:
            return tried, True
        part = os.read(answers, 1 << 16)
        if not part:
            return tried, False
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            kind, seed, outcome, error, commands, took = json.loads(line)
            found.outcomes[kind, outcome or "wrong"] += 1
            found.commands += commands
            found.slowest = max(found.slowest, (took, kind, seed))
            if error:
                found.wrong.append((kind, seed, error))
            tried += 1
            tell(found)


def _name(status, seconds):
    if not os.WIFSIGNALED(status):
        return f"the process ended with {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    if number == signal.SIGPROF:
        return f"it took more than {seconds:g} processor seconds"
    return f"the process was ended by {signal.Signals(number).name}"
