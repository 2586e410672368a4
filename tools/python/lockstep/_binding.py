"""The library behind the module: where it is, its functions and structures by ctypes, its errors, and the commands and
options that it lists."""

import ctypes
import keyword
import os
import re
import sysconfig
import threading
from pathlib import Path

# By the numbers of LsErrorCode.
CODES = ("failed", "io", "limit", "deadlock", "usage", "input", "conflict", "unsupported", "no-fit", "tolerance",
          "stopped")
TEXT, JSON, CSV, MARKDOWN = range(4)
_SONAME = "liblockstep.so.0"


class Diagnostic:
    """What is wrong, and where. path, line, column: None where it is no place in a file."""

    def __init__(self, path, line, column, text):
        self.path, self.line, self.column, self.text = path, line, column, text

    def __repr__(self):
        place = f"{self.path}:{self.line}:{self.column}: " if self.path else ""
        return f"<Diagnostic {place}{self.text}>"


class LockstepError(Exception):
    """What the library refuses. message: as the command line prints it; code: "usage", "input", "conflict", ...;
    exit_code: of the command line; diagnostics: the errors in message one by one, with their places; result: the
    Result where there is one and yet the command failed, else None."""

    def __init__(self, code, message, exit_code, result=None):
        super().__init__(message)
        self.code, self.message, self.exit_code, self.result = code, message, exit_code, result

    @property
    def diagnostics(self):
        found = []
        for line in self.message.splitlines():
            match = re.match(r"(?:error: --[a-z-]+: )?(?:(.+?):(\d+):(\d+): )?error: (.*)", line)
            if match:
                path, row, column, text = match.groups()
                found.append(Diagnostic(path, path and int(row), path and int(column), text))
        return found or [Diagnostic(None, None, None, self.message)]


# --- the library ---------------------------------------------------------------------------------------------------


class GError(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_uint32), ("code", ctypes.c_int), ("message", ctypes.c_char_p)]


class Command(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("name", "line", "usage", "summary", "examples")] + [
        ("job", ctypes.c_int), ("can_stop", ctypes.c_int)]


class Option(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in
                ("key", "flag", "topic", "argument", "choices", "usually", "meaning")] + [
        ("letter", ctypes.c_char)] + [(name, ctypes.c_int) for name in
                                      ("is_usual", "is_repeated", "is_positional", "is_rare", "takes_json", "writes")]


Progress = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
_Errors = ctypes.POINTER(ctypes.POINTER(GError))
_PROTOTYPES = {
    "ls_version": (ctypes.c_char_p,),
    "ls_commands": (ctypes.POINTER(ctypes.POINTER(Command)),),
    "ls_command_options": (ctypes.POINTER(Option), ctypes.POINTER(Command), ctypes.POINTER(ctypes.c_uint)),
    "ls_nearest_word": (ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)),
    "ls_error_exit_code": (ctypes.c_int, ctypes.POINTER(GError)),
    "ls_request_new": (ctypes.c_void_p, ctypes.c_char_p, _Errors),
    "ls_request_free": (None, ctypes.c_void_p),
    "ls_request_set": (ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, _Errors),
    "ls_request_set_progress": (None, ctypes.c_void_p, Progress, ctypes.c_void_p),
    "ls_request_set_stop": (None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)),
    "ls_request_run": (ctypes.c_void_p, ctypes.c_void_p, _Errors),
    "ls_answer_free": (None, ctypes.c_void_p),
    "ls_answer_format": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    "ls_answer_page": (ctypes.c_void_p, ctypes.c_void_p, _Errors),
    "ls_answer_notes": (ctypes.c_void_p, ctypes.c_void_p),
    "ls_answer_warning": (ctypes.c_void_p, ctypes.c_void_p),
    "ls_answer_check": (ctypes.c_int, ctypes.c_void_p, _Errors),
    "g_free": (None, ctypes.c_void_p),
    "g_error_free": (None, ctypes.POINTER(GError)),
}


def _candidates():
    """Where the library may be, the nearest first."""
    here = Path(__file__).resolve().parent
    folders = [here]
    for prefix in here.parents[:4]:
        folders += [prefix / "lib" / (sysconfig.get_config_var("MULTIARCH") or ""), prefix / "lib", prefix / "lib64"]
    for folder in folders:
        yield folder / _SONAME
    yield from sorted(here.parents[2].glob(f"build*/src/include/lockstep/{_SONAME}"))


def _open_library():
    named = os.environ.get("LOCKSTEP_LIBRARY")
    path = named or next((str(p) for p in _candidates() if p.exists()), _SONAME)
    try:
        library = ctypes.CDLL(path)
        for name, (result, *arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as problem:
        raise ImportError(f"cannot load {_SONAME}: {problem}; LOCKSTEP_LIBRARY=FILE says where it is") from None
    return library


class Library:
    """The library and its commands, made when first used."""

    def __init__(self):
        self.c = _open_library()
        self.version = self.c.ls_version().decode()
        self.commands, self.functions = {}, {}
        listed = self.c.ls_commands()
        i = 0
        while listed[i]:
            self.commands[listed[i].contents.name.decode()] = Table(self.c, listed[i])
            i += 1

    def take(self, pointer):
        """A text that the library allocated; None for NULL."""
        if not pointer:
            return None
        text = ctypes.string_at(pointer).decode("utf-8", "replace")
        self.c.g_free(pointer)
        return text

    def hint(self, typed, words):
        """"; did you mean x?", or "" if none of the words is near."""
        listed = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
        near = self.c.ls_nearest_word(typed.encode("utf-8", "surrogateescape"), listed)
        return f"; did you mean {near.decode()}?" if near else ""

    def error(self, problem, result=None):
        """The LockstepError of a GError, which is freed."""
        code, message = problem.contents.code, problem.contents.message.decode("utf-8", "replace")
        exit_code = self.c.ls_error_exit_code(problem)
        self.c.g_error_free(problem)
        name = CODES[code] if code < len(CODES) else "failed"
        return LockstepError(name, message.rstrip("\n"), exit_code, result)


class Table:
    """A command and its options by the names that Python has for them."""

    def __init__(self, c, command):
        n = ctypes.c_uint()
        options = c.ls_command_options(command, ctypes.byref(n))
        self.command = command.contents
        self.name = self.command.name.decode()
        self.options = {python_name(options[i].key.decode()): options[i] for i in range(n.value)}
        self.positional = [name for name, option in self.options.items() if option.is_positional]


_lock = threading.Lock()
_loaded = None


def the_library():
    """The one Library of this process."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = Library()
        return _loaded


def python_name(key):
    """of-key, from: of_key, from_"""
    name = key.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name
