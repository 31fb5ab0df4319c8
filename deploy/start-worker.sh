#!/bin/sh
# Entry point of the container: clone into /clone (or CLONE) if needed, then start a worker of the given pool there.
# If this project is a subfolder of the git repository, PROJECT is its path.
set -eu
clone=${CLONE:-/clone}
if [ ! -d "$clone/.git" ]; then
    git clone --quiet "${GIT_URL:?set GIT_URL to the address of the git repository}" "$clone"
fi
cd "$clone/${PROJECT:-}"
end() { # only this process is told when a container stops; the flow ends its stage, which saves, and holds the lock
    trap '' TERM
    flow=$(cat "/proc/$worker/task/$worker/children" || true)
    kill -KILL "$worker" || true
    [ -z "$flow" ] || kill -TERM $flow
    flock --timeout 80 .dvc/tmp/flow.lock true || true
    exit 143
}
trap end TERM
PYTHONPATH=$PWD python -m pipelines.flows.machine worker "${1:-remote}" &
worker=$!
wait "$worker"
