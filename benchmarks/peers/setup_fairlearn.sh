#!/bin/sh
# Sets up fairlearn 0.15.0 in an environment of its own, .peers/fairlearn: sh benchmarks/peers/setup_fairlearn.sh
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/fairlearn
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
"$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt fairlearn==0.15.0
"$HOME_OF_PEER/bin/python" -c 'import fairlearn; print("fairlearn", fairlearn.__version__)'
