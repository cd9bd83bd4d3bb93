#!/bin/sh
# Sets up PyGRANSO 1.2.0 in an environment of its own, .peers/pygranso:
# sh benchmarks/solver/setup_pygranso.sh
#
# It imports gurobipy and a name that NumPy 2 has dropped; benchmarks/solver/pygranso_shim.py
# stands in for both when it is run. Nothing of it is changed.
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/pygranso
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install numpy scipy scikit-learn safetensors osqp==1.1.3
install --no-deps pygranso==1.2.0
"$HOME_OF_PEER/bin/python" -c 'import benchmarks.solver.pygranso_shim, pygranso.pygranso; print("PyGRANSO 1.2.0")'
