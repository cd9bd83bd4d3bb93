"""``python -m benchmarks.restoration PART``: inverse problems with generative priors.

table
    Held-out mnist (100) and CIFAR-10 (50) images by six tasks: super-resolution ×2 and ×4,
    inpainting with 70 % hidden, Gaussian blur, blur then saturation, blur with an unknown kernel.
    DMPlug, the constrained form and FMPlug beside total variation, the nearest training image, deep
    image prior, DPS (one sample, and the mean of several) and plug-and-play ADMM.
noise
    Four kinds of noise by three levels without retuning: ours, the level unknown, beside DPS and
    plug-and-play whose level is stated as half, once, twice and four times what it is.
video
    Moving digits with known flow: base, + semantic, + pixel, both.
gpu
    Seconds an image: one task of the table, one way at a time on a device of its own; with
    ``--only-record`` as they were among other jobs.
all
    Table, noise and video: side by side, what matters most first; then what is timed, alone.
tune
    A small grid for every way, ours and others alike, on training images; ``settings`` takes the
    winners where it is recorded, and the methods' own options where not.
pictures, pack, merge
    Contact sheets of some test images; the images in few bytes, to be carried; results of another
    machine.

Protocol
    Images in [0, 1], noise σ = 0.02 in these units. Test images enter the tables alone, and ground
    truth enters the scores alone. What is reported is the iterate that a way selects; the oracle
    iterate, the best of those it passed, stands beside it. Jobs (data, way, task) are worked off by
    several processes, one JSON each under ``.data/restoration/jobs``: what is there is not made
    again. ``--out FOLDER`` bundles them into one file as they finish, ``merge FILE`` unpacks it,
    ``--only-record`` keeps the figures for the page.
    ``made.jsonl.xz`` here is the bundle that the recorded figures come from: merge it to go on.
"""
