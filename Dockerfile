# For trying the project; includes .git because DVC needs it. For remote workers, see deploy/Dockerfile.
#
#     docker build --tag convs2s .
#     docker run --rm -it convs2s                    # make repro: data, training, translation, scores
#     docker run --rm -it convs2s make test
#
# This installs PyTorch for CPUs. For GPUs: docker build --build-arg PIP_EXTRA_INDEX_URL= ..., and docker run --gpus all ...
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
WORKDIR /convs2s
COPY . .
RUN make install && rm -rf /root/.cache/pip
CMD ["make", "repro"]
