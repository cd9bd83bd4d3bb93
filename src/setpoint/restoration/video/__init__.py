"""Video: frames restored together; seeds share a part, pixels move with the flow."""

from setpoint.restoration.video.flow_warp import warp, warping_error
from setpoint.restoration.video.restore_video import RestoredVideo, restore_video

__all__ = ["RestoredVideo", "restore_video", "warp", "warping_error"]
