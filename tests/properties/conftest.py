"""The number of inputs tried per property: 100,000 in `make test-properties`, a few by default."""

import os

from hypothesis import HealthCheck, settings

QUICK = 30
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", QUICK))

# The inputs are the same each time, so a failure in CI can be reproduced here.
settings.register_profile(
    "ours",
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("ours")
