"""The numbers that the paper reports."""

from __future__ import annotations

ACCURACY = {
    "test": {
        "scene": {
            ("mml", ""): {3: (8.4, 2.0), 5: (7.2, 1.3)},
            ("mml", "beam-64"): {3: (15.4, 12.6), 5: (12.3, 9.6)},
            ("expert-mml", ""): {3: (1.8, 1.5), 5: (1.6, 1.2)},
            ("vbsix", ""): {3: (34.2, 27.5), 5: (28.2, 20.7)},
        },
        "alchemy": {
            ("mml", ""): {3: (41.9, 22.8), 5: (33.2, 20.1)},
            ("mml", "beam-64"): {3: (44.6, 23.7), 5: (36.3, 20.6)},
            ("expert-mml", ""): {3: (29.4, 22.7), 5: (23.1, 18.8)},
            ("vbsix", ""): {3: (74.5, 1.1), 5: (64.8, 1.5)},
        },
        "tangrams": {
            ("mml", ""): {3: (32.5, 20.7), 5: (16.8, 14.1)},
            ("mml", "beam-64"): {3: (45.6, 18.0), 5: (25.8, 12.6)},
            ("expert-mml", ""): {3: (2.4, 0.8), 5: (1.2, 0.5)},
            ("vbsix", ""): {3: (65.0, 0.8), 5: (43.0, 1.3)},
        },
    },
    "dev": {
        "scene": {
            ("mml", ""): {3: (5.5, 0.5), 5: (3.8, 0.6)},
            ("execution-only", ""): {3: (7.4, 10.4), 5: (4.0, 5.8)},
            ("value-only", ""): {3: (7.6, 8.3), 5: (3.4, 2.9)},
            ("vbsix", ""): {3: (31.0, 24.7), 5: (22.6, 19.6)},
        },
        "alchemy": {
            ("mml", ""): {3: (36.4, 26.5), 5: (25.4, 23.0)},
            ("execution-only", ""): {3: (41.3, 28.6), 5: (28.2, 23.3)},
            ("value-only", ""): {3: (78.5, 1.0), 5: (72.8, 1.3)},
            ("vbsix", ""): {3: (81.9, 1.3), 5: (75.2, 2.9)},
        },
        "tangrams": {
            ("mml", ""): {3: (34.4, 18.3), 5: (15.6, 12.8)},
            ("execution-only", ""): {3: (33.5, 15.5), 5: (12.7, 10.4)},
            ("value-only", ""): {3: (66.8, 1.5), 5: (42.8, 1.9)},
            ("vbsix", ""): {3: (68.6, 2.0), 5: (44.2, 2.1)},
        },
    },
}
"""Accuracy in %, by split, domain, (method, variant) and number of utterances: mean and standard deviation over 6 seeds
(Tables 1 and 2)."""
PRIOR_WORK = {
    "Long 2016": {"scene": {3: 23.2, 5: 14.7}, "alchemy": {3: 56.8, 5: 52.3}, "tangrams": {3: 64.9, 5: 27.6}},
    "Guu 2017": {"scene": {3: 64.8, 5: 46.2}, "alchemy": {3: 66.9, 5: 52.9}, "tangrams": {3: 65.8, 5: 37.1}},
    "Suhr and Artzi 2018": {"scene": {3: 73.9, 5: 62.0}, "alchemy": {3: 74.2, 5: 62.7}, "tangrams": {3: 80.8, 5: 62.4}},
    "Fried 2018": {"scene": {5: 72.7}, "alchemy": {5: 72.0}, "tangrams": {5: 69.6}},
}
"""Test accuracy in % by number of utterances, medians of 5 runs (appendix "Prior Work")."""
ANALYSIS = {
    "scene": {"paths": 143903, "correct_discarded": 18.5},
    "alchemy": {"paths": 5892, "correct_discarded": 11.2},
    "tangrams": {"paths": 678, "correct_discarded": 3.8},
}
"""What the beam holds in execution space (section "Analysis")."""
CRITIC = {"many differences": 87.0, "one difference": 78.9, "few people": 86.1, "many people": 82.1}
"""In % of the states concerned, in scene (appendix "Value Network Analysis"); see `evaluation.critic_analysis`."""
