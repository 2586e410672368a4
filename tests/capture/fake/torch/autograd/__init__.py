from . import profiler  # noqa: F401


def _enable_record_function(enable):
    pass
