#!/bin/sh
# Sets up torch-btg 0.0.1 in an environment of its own, .peers/btg: sh benchmarks/peers/setup_btg.sh
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/btg
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install numpy torch-btg==0.0.1
"$HOME_OF_PEER/bin/python" -c 'from importlib.metadata import version; import torch_btg.loss; print("torch-btg", version("torch-btg"))'
