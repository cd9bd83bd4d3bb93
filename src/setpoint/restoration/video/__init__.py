"""Video: frames restored together; seeds share a part, pixels move with the flow."""

from setpoint.restoration.video.record import RestoredVideo
from setpoint.restoration.video.restore import restore_video
from setpoint.restoration.video.warp import warp, warping_error

__all__ = ["RestoredVideo", "restore_video", "warp", "warping_error"]
