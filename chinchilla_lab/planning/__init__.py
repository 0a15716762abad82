"""One plan: a law of the loss joined with a machine, a deadline, data and demand."""

from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.solve import default_stack, plan, solve, typed_plan

__all__ = ["OBJECTIVES", "Plan", "Problem", "default_stack", "plan", "solve", "typed_plan"]
