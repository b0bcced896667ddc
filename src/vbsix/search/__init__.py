"""The searches of the paper: one loop with two switches, the graph it discovers, and the programs in it."""

from vbsix.search.beam import Beam, Critic, Expansion, Graph, Policy, Problem, ac_score, beam_search
from vbsix.search.config import SearchConfig
from vbsix.search.graph import distances, join, next_vertex, same_vertex
from vbsix.search.programs import (
    Negatives,
    Programs,
    complete_programs,
    elect_programs,
    extract_negatives,
    extract_programs,
    predict,
    program_search,
)
from vbsix.search.sampling import Samples, sample_programs
from vbsix.search.statistics import Statistics, statistics

__all__ = [
    "Beam",
    "Critic",
    "Expansion",
    "Graph",
    "Negatives",
    "Policy",
    "Problem",
    "Programs",
    "Samples",
    "SearchConfig",
    "Statistics",
    "ac_score",
    "beam_search",
    "complete_programs",
    "distances",
    "elect_programs",
    "extract_negatives",
    "extract_programs",
    "join",
    "next_vertex",
    "predict",
    "program_search",
    "same_vertex",
    "sample_programs",
    "statistics",
]
