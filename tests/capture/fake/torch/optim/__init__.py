from . import optimizer  # noqa: F401
from .optimizer import Adam  # noqa: F401
