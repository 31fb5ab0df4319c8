"""How many inputs each property is tried on: `make test-properties` takes 100,000, the default suite some."""

import os

from hypothesis import HealthCheck, settings

QUICK = 30
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", QUICK))

# The same inputs each time: what fails in CI fails here, too.
settings.register_profile(
    "ours",
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("ours")
