#!/bin/sh
# Entry point of the container: clone into /clone (or CLONE) if needed, then start a worker of the given pool there.
set -eu
clone=${CLONE:-/clone}
if [ ! -d "$clone/.git" ]; then
    git clone --quiet "${GIT_URL:?set GIT_URL to the address of the git repository}" "$clone"
fi
cd "$clone"
PYTHONPATH=$clone exec python -m pipelines.flows.machine worker "${1:-remote}"
