"""The objectives of the methods; `config/schema.py` names them."""

from __future__ import annotations

from vbsix.training.expert_mml import expert_mml_objective
from vbsix.training.mml import mml_objective
from vbsix.training.objective import Objective
from vbsix.training.reinforce import reinforce_objective

MML = Objective(mml_objective)
EXPERT_MML = Objective(expert_mml_objective, expert=True, critic=False)
REINFORCE = Objective(reinforce_objective, critic=False, samples=True)
