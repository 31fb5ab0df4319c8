#!/bin/sh
# Entry point of the container: clone into /clone (or CLONE) if needed, then start a worker of the given pool there.
# If this project is a subfolder of the git repository, PROJECT is its path.
set -eu
clone=${CLONE:-/clone}
if [ ! -d "$clone/.git" ]; then
    git clone --quiet "${GIT_URL:?set GIT_URL to the address of the git repository}" "$clone"
fi
cd "$clone/${PROJECT:-}"
PYTHONPATH=$PWD exec python -m pipelines.flows.machine worker "${1:-remote}"
