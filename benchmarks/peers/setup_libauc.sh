#!/bin/sh
# Sets up LibAUC 2.0.1 in an environment of its own, .peers/libauc: sh benchmarks/peers/setup_libauc.sh
#
# LibAUC's requirements include torchvision, OpenCV, transformers and torch_geometric. The losses, the
# optimizers and the samplers need none of them: libauc.sampler imports torchvision by name and does
# not use it, so a module of that name with nothing in it stands in. libauc.datasets and
# libauc.models are not usable here.
set -eu
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
HOME_OF_PEER=.peers/libauc
test -x "$HOME_OF_PEER/bin/python" || "$PYTHON" -m venv "$HOME_OF_PEER"
echo "*" > .peers/.gitignore
install() {
    "$HOME_OF_PEER/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"
}
install torch==2.13.0
install numpy scipy scikit-learn tqdm
install --no-deps libauc==2.0.1
SITE=$("$HOME_OF_PEER/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir -p "$SITE/torchvision"
echo '"""Stands in for torchvision, which LibAUC imports and its losses do not use."""' \
    > "$SITE/torchvision/__init__.py"
"$HOME_OF_PEER/bin/python" -c 'import libauc, libauc.losses, libauc.optimizers, libauc.sampler; print("LibAUC", libauc.__version__)'
