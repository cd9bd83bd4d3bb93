"""``python -m benchmarks.restoration PART``: inverse problems with generative priors.

table
    Held-out mnist (100) and CIFAR-10 (50) images by six tasks: super-resolution ×2 and ×4,
    inpainting with 70 % hidden, Gaussian blur, blur then saturation, blur with an unknown kernel.
    DMPlug, the constrained form and FMPlug beside total variation, the nearest training image, deep
    image prior, DPS (one sample, and the mean of several) and plug-and-play ADMM.
noise
    Four kinds of noise by three levels without retuning: ours, the level unknown, beside DPS whose
    level is stated as half, once, twice and four times what it is.
video
    Moving digits with known flow: base, + semantic, + pixel, both.
gpu
    Seconds an image, one way at a time on a device of its own.
tune
    A small grid for every way, ours and others alike, on training images; ``settings`` keeps the
    winners.
pictures
    Contact sheets of some test images by all ways.

Protocol
    Images in [0, 1], noise σ = 0.02 in these units. Test images enter the table alone, and ground
    truth enters the scores alone. What is reported is the iterate that a way selects; the oracle
    iterate, the best of those it passed, stands beside it. Jobs (data, way, task) are worked off by
    several processes, longest first, one JSON each under ``.data/restoration/jobs``: what is there
    is not made again. Where they run on another machine, ``--out FOLDER`` bundles them into one
    file as they finish and ``merge FILE`` unpacks it here; ``--record`` then keeps the figures.
"""
