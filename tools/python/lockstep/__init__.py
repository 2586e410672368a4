"""Lockstep from Python: predicts one training step of a large model on a cluster.

    import lockstep
    result = lockstep.run(model="llama3.1-8b", cluster="dgx-h100", gpus=8, tp=2, pp=2)
    print(result.step_time_s)

There is a function for each command of the library; help(lockstep.run) lists its options. They are made from the
library's own tables, so this module knows no command and no option by name, but for what a Result can do more.
Functions may run in several threads at once: the library runs without the interpreter's lock.

liblockstep is looked for in LOCKSTEP_LIBRARY, beside this file, in the folders lib of the prefix that this file is
installed in, in the build folders of the source tree, and where the system's loader looks. Names of models and
clusters are looked up as by the command line: a path, then $LS_DATA_DIR, the current folder, the installed data.
"""

import csv
import ctypes
import html
import inspect
import io
import json
import numbers
import os
import shlex
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, MappingView, Sequence
from contextlib import contextmanager
from pathlib import Path

from ._binding import CSV, JSON, MARKDOWN, TEXT, Diagnostic, GError, LockstepError, Progress, python_name, the_library

__all__ = ["Diagnostic", "LockstepError", "LockstepWarning", "Record", "Result", "SweepResult"]

# --- values --------------------------------------------------------------------------------------------------------


def _is_list(value):
    several = isinstance(value, (Sequence, Iterator, MappingView))
    return several and not isinstance(value, (str, bytes, Result))


def _number(value):
    if isinstance(value, numbers.Integral):
        return str(int(value))
    real = float(value)
    return str(int(real)) if real.is_integer() and abs(real) < 2**53 else repr(real)


def _json(name, value):
    """A dict as the JSON that may stand in place of a file: a line for each key, for places in messages."""

    def plain(part):
        if isinstance(part, os.PathLike):
            return os.fspath(part)
        if hasattr(part, "tolist"):
            return part.tolist()
        raise TypeError(f"{name}: expected what JSON has in the dict; got {part!r}")

    return json.dumps(value, indent=1, default=plain)


def _text(name, value, files, takes_json=False):
    """A value as the command line takes it. files: takes a temporary file of each Result. takes_json: a dict too."""
    if hasattr(value, "tolist"):  # of numpy, pandas, torch
        value = value.tolist()
    if isinstance(value, bool):
        text = "1" if value else "0"
    elif isinstance(value, Result):
        text = value.json() if takes_json else files(value)
    elif isinstance(value, numbers.Real):
        text = _number(value)
    elif isinstance(value, Mapping) and takes_json:
        text = _json(name, dict(value))
    elif _is_list(value):
        items = [_text(name, item, files) for item in value]
        if not items:
            raise TypeError(f"{name}: expected at least one value; got an empty list")
        text = ("/" if any("," in item for item in items) else ",").join(items)
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
    else:
        also = "a dict, " if takes_json else ""
        raise TypeError(f"{name}: expected {also}a text, a number, a bool, a path or a list of them; got {value!r}")
    if not isinstance(text, str) or "\0" in text:
        raise TypeError(f"{name}: expected a text without a NUL; got {value!r}")
    return text


@contextmanager
def _file_of_results():
    """Gives a function from a Result to a file with its JSON, which is there until the end."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        written = []

        def write(result):
            written.append(Path(folder) / f"{len(written) + 1}.json")
            written[-1].write_text(result.json(), encoding="utf-8")
            return str(written[-1])

        yield write


# --- results -------------------------------------------------------------------------------------------------------


class LockstepWarning(UserWarning):
    """Something is wrong with a result though it is one, as with a job that does not fit."""


class Record(dict):
    """A JSON object whose members are attributes too: result.memory.state_bytes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} here{the_library().hint(name, list(self))}; "
                                 f"there are: {', '.join(self)}") from None

    def __dir__(self):
        return [*super().__dir__(), *self]


class Result:
    """An answer of a command. The members of its JSON are attributes and items of it: result.step_time_s. It shows
    itself as the text that the command line prints. notes: what had to be assumed, a list of lines; warning: what is
    wrong with it though it is a result; ""."""

    def __init__(self, table, answer):
        library = the_library()
        self._table, self._answer, self._dict = table, answer, None
        self._free = library.c.ls_answer_free
        self.notes = library.take(library.c.ls_answer_notes(answer)).splitlines()
        self.warning = library.take(library.c.ls_answer_warning(answer)).rstrip("\n")

    def __del__(self):
        if getattr(self, "_free", None):
            self._free(self._answer)

    def _format(self, form, name):
        library = the_library()
        text = library.take(library.c.ls_answer_format(self._answer, form, None))
        if text is None:
            raise LockstepError("usage", f"there is no {name} of this", 2)
        return text

    def text(self):
        """What the command line prints."""
        return self._format(TEXT, "text")

    def json(self):
        """What the command line prints with --json."""
        return self._format(JSON, "JSON")

    def csv(self):
        """A table, of the commands that have --csv. Of run its spans."""
        return self._format(CSV, "CSV")

    def markdown(self):
        """Tables for an issue or a paper."""
        return self._format(MARKDOWN, "Markdown")

    def page(self):
        """The page that --report writes: one HTML document, which needs no network."""
        library, problem = the_library(), ctypes.POINTER(GError)()
        text = library.take(library.c.ls_answer_page(self._answer, ctypes.byref(problem)))
        if text is None:
            raise library.error(problem)
        return text

    def to_dict(self):
        """The JSON as Python's dicts, lists and numbers."""
        return json.loads(self.json())

    def _members(self):
        if self._dict is None:
            self._dict = json.loads(self.json(), object_hook=Record)
        return self._dict

    def timeline(self):
        """Every span of the step, as columns: a dict of lists, which pandas.DataFrame() takes. Times are in
        picoseconds. Of run alone."""
        if "csv" not in self._table.options or not self._table.options["csv"].writes:
            raise LockstepError("usage", f"{self._table.name} has no timeline", 2)
        rows = csv.reader(io.StringIO(self.csv(), newline=""))
        names = next(rows)
        columns = list(zip(*rows)) or [()] * len(names)
        return {name: _column(column) for name, column in zip(names, columns)}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._members()
        if isinstance(members, dict) and name in members:
            return members[name]
        names = [word for word in dir(self) if not word.startswith("_")]
        raise AttributeError(f"a result of {self._table.name} has no {name!r}{the_library().hint(name, names)}")

    def __getitem__(self, key):
        return self._members()[key]

    def __copy__(self):
        return self  # it does not change

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a result stays in its process; take result.to_dict() or result.json() out of it")

    def __dir__(self):
        members = self._members()
        return [*super().__dir__(), *(members if isinstance(members, dict) else ())]

    def __repr__(self):
        lines = [f"note: {note}" for note in self.notes] + ([f"warning: {self.warning}"] if self.warning else [])
        return "\n".join([self.text().rstrip("\n"), *lines])

    def _repr_html_(self):
        try:
            page = self.page()
        except LockstepError:
            return f"<pre>{html.escape(repr(self))}</pre>"
        return (f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" width="100%" height="640" '
                'style="border: 0"></iframe>')


class SweepResult(Result, Sequence):
    """The best configurations as a list of dicts, which pandas.DataFrame() takes: the knobs of each, then its figures,
    the best first. All else of the JSON is an attribute: result.counts."""

    def rows(self):
        rows = []
        for best in self._members()["best"]:
            figures = {key: value for key, value in best.items() if key not in ("config", "also")}
            rows.append(Record({**best["config"], **figures}))
        return rows

    def job(self, index=0):
        """The options with which run() simulates a row again, and memory() and others look at it, as a dict."""
        words = shlex.split(self._members()["best"][index]["command"])
        return _options_of(the_library().commands["run"], words[2:])

    def __len__(self):
        return len(self._members()["best"])

    def __getitem__(self, key):
        return self._members()[key] if isinstance(key, str) else self.rows()[key]

    def __iter__(self):
        return iter(self.rows())


def _options_of(table, words):
    """A command line as the keywords of a function."""
    names = {option.flag.decode(): name for name, option in table.options.items() if option.flag}
    options, words = {}, list(words)
    while words:
        word = words.pop(0)
        name = names.get(word[2:])
        is_switch = name and not table.options[name].argument
        value = True if is_switch and (not words or words[0].startswith("--")) else words.pop(0)
        if word == "--set":
            key, value = value.split("=", 1)
            name = next(n for n, option in table.options.items() if option.key.decode() == key)
        several = table.options[name].is_repeated
        options[name] = [*options.get(name, []), value] if several else value
    return options


def _column(values):
    """Whole numbers, None where a cell is empty; texts where one is no number."""
    try:
        return [int(value) if value else None for value in values]
    except ValueError:
        return list(values)


# --- requests ------------------------------------------------------------------------------------------------------


class _Request:
    """One request of the library on its way, with what it borrows. progress: called with what is done and what is to
    do; what it raises stops the command."""

    def __init__(self, table, settings, progress):
        self.library, self.stop, self.problem, self.raised = the_library(), ctypes.c_int(0), None, None
        self.request = self.new(table, settings)
        self.callback = Progress(lambda done, to_do, _: self.tell(progress, done, to_do)) if progress else None
        c = self.library.c
        if self.callback:
            c.ls_request_set_progress(self.request, self.callback, None)
        if table.command.can_stop:
            c.ls_request_set_stop(self.request, ctypes.byref(self.stop))
        self.is_over = threading.Event()

    def new(self, table, settings):
        c, problem = self.library.c, ctypes.POINTER(GError)()
        request = c.ls_request_new(table.command.name, ctypes.byref(problem))
        for name, value in settings:
            key = table.options[name].key
            if not c.ls_request_set(request, key, value.encode("utf-8", "surrogateescape"), ctypes.byref(problem)):
                c.ls_request_free(request)
                raise self.library.error(problem)
        return request

    def tell(self, progress, done, to_do):
        if self.raised is None:
            try:
                progress(done, to_do)
            except BaseException as raised:
                self.raised, self.stop.value = raised, 1

    def run(self):
        """Frees the request. The answer, or NULL with a problem, stays here."""
        c, problem = self.library.c, ctypes.POINTER(GError)()
        self.answer = c.ls_request_run(self.request, ctypes.byref(problem))
        c.ls_request_free(self.request)
        self.problem = problem
        self.is_over.set()


def _run_in_thread(request, can_stop):
    """So that Python sees Ctrl-C meanwhile. True: it came. What cannot stop is left behind, to end by itself; so is
    everything at a second Ctrl-C."""
    thread = threading.Thread(target=request.run, daemon=True)
    try:
        thread.start()
        request.is_over.wait()
        return False
    except KeyboardInterrupt:
        request.stop.value = 1
        if not can_stop or thread.ident is None:
            raise
        request.is_over.wait()
        return True


def _ask(table, settings, progress):
    """A Result, or what went wrong. settings: pairs of a name and a text."""
    library, request, interrupted = the_library(), _Request(table, settings, progress), False
    if threading.current_thread() is threading.main_thread():
        interrupted = _run_in_thread(request, table.command.can_stop)
    else:
        request.run()
    result = None
    if request.answer:
        result = (SweepResult if table.name == "sweep" else Result)(table, request.answer)
    if interrupted:
        interrupt = KeyboardInterrupt()
        interrupt.result = result
        raise interrupt
    if request.raised is not None:
        raise request.raised
    if result is None:
        raise library.error(request.problem)
    problem = ctypes.POINTER(GError)()
    if not library.c.ls_answer_check(request.answer, ctypes.byref(problem)):
        raise library.error(problem, result)
    return result


def _unknown(table, name):
    """The library's words, with the name that was probably meant."""
    return TypeError(f"{table.name}() has no option {name!r}{the_library().hint(name, list(table.options))}")


def _settings(table, arguments, options, files):
    """What was given, as pairs of a name and a text, in order."""
    given = []
    at = 0
    for argument in arguments:
        if at == len(table.positional):
            raise TypeError(f"{table.name}() takes no argument without a name here: {argument!r}")
        given.append((table.positional[at], argument))
        at += not table.options[table.positional[at]].is_repeated
    for name, value in options.items():
        known = next((n for n in (name, name + "_", name.rstrip("_")) if n in table.options), None)
        if known is None:
            raise _unknown(table, name)
        several = _is_list(value) and table.options[known].is_repeated
        given += [(known, item) for item in value] if several else [(known, value)]
    return [(name, _text(name, value, files, table.options[name].takes_json)) for name, value in given
            if value is not None]


# --- functions -----------------------------------------------------------------------------------------------------


def _signature(table):
    kinds, parameters = inspect.Parameter, []
    if table.positional:
        parameters.append(kinds("arguments", kinds.VAR_POSITIONAL))
    parameters += [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in table.options]
    return inspect.Signature(parameters + [kinds("progress", kinds.KEYWORD_ONLY, default=None)],
                             return_annotation=SweepResult if table.name == "sweep" else Result)


def _documentation(table):
    lines = [table.command.summary.decode(), "", "Options; None: not given"]
    for name, option in table.options.items():
        argument = (option.choices or option.argument or b"bool").decode()
        usually = f" [{option.usually.decode()}]" if option.usually else ""
        lines.append(f"    {name}: {argument}{usually}\n        {option.meaning.decode()}")
    lines.append("    progress: function\n        Called with the simulations that are done, and how many there are at most")
    return "\n".join(lines)


def _function(table):
    def command(*arguments, progress=None, **options):
        with _file_of_results() as files:
            result = _ask(table, _settings(table, arguments, options, files), progress)
        if result.warning:
            warnings.warn(result.warning, LockstepWarning, stacklevel=2)
        return result

    command.__name__ = command.__qualname__ = python_name(table.name)
    command.__module__ = __name__
    command.__doc__, command.__signature__ = _documentation(table), _signature(table)
    return command


def __getattr__(name):
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    library = the_library()
    if name == "__version__":
        return library.version
    for command, table in library.commands.items():
        if python_name(command) == name:
            return library.functions.setdefault(name, _function(table))
    names = [python_name(command) for command in library.commands]
    raise AttributeError(f"lockstep has no command {name!r}{library.hint(name, names)}; it has: {', '.join(names)}")


def __dir__():
    return sorted([*__all__, "__version__", *map(python_name, the_library().commands)])
