#!/bin/sh
# Sets up humancompatible-train 0.4.2 (Apache-2.0) in an environment of its own,
# .peers/humancompatible: sh benchmarks/peers/setup_humancompatible.sh
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/humancompatible
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install numpy humancompatible-train==0.4.2
"$HOME_OF_PEER/bin/python" -c 'from importlib.metadata import version; import humancompatible.train.dual_optim; print("humancompatible-train", version("humancompatible-train"))'
