"""The paper's searches, for one example, batched by `jax.vmap` outside.

| what | where |
|---|---|
| Algorithm 1, ProgramSearch | `program_search.py` |
| Algorithm 1, VBSiX; the graph G | `beam.py` |
| AC-Scorer, ranking, ε-greedy | `select.py` |
| our selection rule | `stochastic.py` |
| the chart P_t; merging states in execution space | `merging.py` |
| programs and negatives out of G | `extraction.py`, `graph.py` |
| prediction | `prediction.py` |
| sampling for REINFORCE | `sampling.py` |
"""

from vbsix.search.beam import Beam, Candidates, Expansion, Graph, Problem, beam_search, outcome_of
from vbsix.search.config import SearchConfig
from vbsix.search.extraction import Negatives, Programs, complete_programs, extract_negatives, extract_programs
from vbsix.search.graph import distances, join, next_vertex, same_vertex
from vbsix.search.program_search import program_search, search_graph
from vbsix.search.sampling import Samples, sample_programs
from vbsix.search.select import Scorer, SelectionRule, ac_score, greedy
from vbsix.search.statistics import Statistics, statistics

__all__ = [
    "Beam",
    "Candidates",
    "Expansion",
    "Graph",
    "Negatives",
    "Problem",
    "Programs",
    "Samples",
    "Scorer",
    "SearchConfig",
    "SelectionRule",
    "Statistics",
    "ac_score",
    "beam_search",
    "complete_programs",
    "distances",
    "extract_negatives",
    "extract_programs",
    "greedy",
    "join",
    "next_vertex",
    "outcome_of",
    "program_search",
    "same_vertex",
    "sample_programs",
    "search_graph",
    "statistics",
]
