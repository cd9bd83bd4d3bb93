#!/bin/sh
# Sets up Cooper 1.0.1 (cooper-optim on PyPI) in an environment of its own, .peers/cooper: sh benchmarks/peers/setup_cooper.sh
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/cooper
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install numpy cooper-optim==1.0.1
"$HOME_OF_PEER/bin/python" -c 'import cooper, torch; print("Cooper", cooper.__version__, "torch", torch.__version__)'
