#!/bin/sh
# Sets up foolbox 3.3.4 and torchattacks 3.5.1 beside Setpoint in .peers/attacks:
# sh benchmarks/robustness/setup_attacks.sh
#
# torchattacks asks for torchvision and does not import it: installed without what it asks for.
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/attacks
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install -e .
install foolbox==3.3.4
install --no-deps torchattacks==3.5.1
"$HOME_OF_PEER/bin/python" -c 'import foolbox, torchattacks; print("foolbox", foolbox.__version__)'
