"""The planner that a configuration names."""

from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.config import Config
from course.sim.package import Package

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.deployment import Deployment
    from tiny_llm_ref.cluster.planner_loop import PlannerLoop


def planner(config: Config, package: Package, built: "Deployment") -> "PlannerLoop | None":
    """None where nobody plans. Raises CourseError."""
    if config.control.planner is None:
        return None
    raise CourseError(f"no planner {config.control.planner!r}")
