"""Methods that restoration with a generative prior is measured against."""

from setpoint.restoration.baselines.deep_image_prior import deep_image_prior
from setpoint.restoration.baselines.dps import dps
from setpoint.restoration.baselines.nearest_image import nearest
from setpoint.restoration.baselines.plug_and_play import pnp
from setpoint.restoration.baselines.total_variation import total_variation

__all__ = ["deep_image_prior", "dps", "nearest", "pnp", "total_variation"]
