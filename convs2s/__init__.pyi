# The types of names that __init__.py imports only when they are used.
from convs2s.package.translator import load as load

__version__: str
